"""Find every problem of config.yaml, catalogue/ and papers/ before anything runs.

Each has its file and line.
"""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from workflow_scripts.common.errors import ErrorList, UserError
from workflow_scripts.common.files import digest, list_files
from workflow_scripts.common.plug_ins import ANALYSES, FIGURES, list_modules, parse_options
from workflow_scripts.common.run_names import START, Run, VariantKey, split_weights
from workflow_scripts.common.validation import describe_unknown, locate, suggest_name
from workflow_scripts.config.catalogue import Catalogue, Paper
from workflow_scripts.config.display_schema import Analysis, FigureDisplay, TableCell, TableDisplay
from workflow_scripts.config.layers import locate_errors, merge_settings
from workflow_scripts.config.loading import load_config, read_catalogue
from workflow_scripts.config.own_code import check_definition, check_entry_points, check_settings
from workflow_scripts.config.requested import check_named_claims, list_requested_runs
from workflow_scripts.config.schema import Config
from workflow_scripts.config.setting_checks import (
    Case,
    ReplacedKey,
    describe_replaced_keys,
    list_replaced_keys,
    list_setting_problems,
)
from workflow_scripts.config.specs import (
    resolve_candidates,
    resolve_data,
    resolve_evaluation,
    resolve_intervention,
    resolve_run,
)
from workflow_scripts.data.data_spec import DataSpec
from workflow_scripts.evaluation.measures import list_measures, parse_measure_options
from workflow_scripts.interventions.settings import METRICS
from workflow_scripts.tasks.packages import load_kind_settings
from workflow_scripts.tasks.run_spec import RunSpec
from workflow_scripts.tasks.settings import Evaluation
from workflow_scripts.training.settings import Validation

PACKAGE = Path(__file__).parents[1]
# What a cell may leave open, and of which some runs have no scores.
SELECTED_BY_SOME = ("pooling", "rate", "intervention_seed", "item_set", "readout")
ITEM_SETS = ("all", "own_correct")  # of the scores under an intervention
ENTRY_FUNCTIONS = {ANALYSES: "analyse", FIGURES: "draw"}
IS_PLACED = re.compile(r"\S+:\d+: ")  # with file and line
# Parts of a message that differ from run to run.
OF_A_RUN = re.compile(
    r"settings of \S+: "
    r"|options of task \S+ at scale \S+: "
    r"|task \S+: "
    r"|init: run \S+ \S+ "
)


def find_problems(root: str | Path = ".") -> list[str]:
    """Return all problems, one line each: file, line, key, what is wrong and what to do.

    What depends on a wrong entry is checked once that entry is right.
    """
    problems = ErrorList()
    config: Config | None = None
    with problems.collect():
        config = load_config(root=root)
    catalogue = read_catalogue(str(root), os.getcwd())
    problems.add(*catalogue.problems.lines)
    problems.add(*check_entry_points())
    if list(check_settings()):
        return list(problems.lines)  # no settings of a run can be checked
    _check_tasks(catalogue, problems)
    _check_runs(catalogue, problems)
    for key, paper in catalogue.papers.items():
        file = catalogue.root / "papers" / key / "displays.yaml"
        problems.add(*_check_pilots(catalogue.root, key, paper))
        with problems.collect():
            problems.add(*_check_modules(file, paper))
            problems.add(*_check_scores(file, catalogue, paper))
    if config is not None and not problems.lines:
        claims = locate(catalogue.root / "config.yaml", ("claims",))
        with problems.collect(), _place_errors(claims):
            check_named_claims(catalogue, config)
    # One mistake may show in many runs.
    first_lines: dict[str, str] = {}
    for line in problems.lines:
        problem = line
        text = IS_PLACED.sub("", line, count=1)
        if text.startswith("settings of "):  # the place is that of a run, not of the mistake
            problem = text
        first_lines.setdefault(OF_A_RUN.sub("", problem), line)
    return list(first_lines.values())


@contextmanager
def _place_errors(place: str) -> Iterator[None]:
    """Put a place before each problem of a UserError that names none."""
    try:
        yield
    except UserError as error:
        raise UserError("\n".join(_place(str(error).splitlines(), place))) from error


def _place(lines: Iterable[str], place: str) -> list[str]:
    """Put `place` before each line that does not begin with a file and a line number."""
    return [line if IS_PLACED.match(line) else f"{place}: {line}" for line in lines]


def _check_pilots(root: Path, key: str, paper: Paper) -> Iterator[str]:
    """Yield sources of pilots that do not exist. Those in results/ may have been removed."""
    for name, plan in paper.plans.items():
        source = plan.pilots.source
        if source.startswith("results/") or (root / source).is_file():
            continue
        line = locate(root / "papers" / key / name, ("pilots", "source"))
        advice = "write it, docs/statistics.md says how, or name the file that has their scores"
        yield f"{line}: key 'pilots.source' names '{source}', which does not exist; {advice}"


def check_files(stamp: Path) -> None:
    """Raise UserError with all problems of the files of this project.

    If there are none, `stamp` stores the sizes and times of the files, so that the next call has
    nothing to check.
    """
    state = _digest_files()
    if stamp.exists() and stamp.read_text(encoding="utf-8") == state:
        return
    if problems := find_problems():
        raise UserError("\n".join(problems))
    stamp.parent.mkdir(exist_ok=True)
    stamp.write_text(state, encoding="utf-8")


def _digest_files() -> str:
    """Return the digest of the sizes and times of all files that decide on problems."""
    places = {"config.yaml": Path("config.yaml")}
    for folder in (Path("catalogue"), Path("papers"), PACKAGE):
        for file in list_files(folder, "**/*"):
            # A misnamed file of catalogue/ or papers/ is a problem, too.
            if folder != PACKAGE or file.suffix in (".yaml", ".csv", ".py"):
                # Names within the folder of the checkout, which may be moved.
                places[f"{folder.name}/{file.relative_to(folder)}"] = file
    states = []
    for name, file in sorted(places.items()):
        status = file.stat()
        states.append([name, status.st_size, status.st_mtime_ns])
    return digest(states)


def _check_tasks(catalogue: Catalogue, problems: ErrorList) -> None:
    """Find problems of the data of each task at each scale."""
    for scale in catalogue.scales:
        for name, task in catalogue.tasks.items():
            if not task.is_right:
                continue
            with problems.collect():
                resolve_data(catalogue, name, scale)
            if any(block.content.intervention for block in task.blocks):
                with problems.collect():
                    resolve_candidates(catalogue, name, scale)


def _check_runs(catalogue: Catalogue, problems: ErrorList) -> None:
    """Find problems of the specs of the runs that papers ask for, and of all other variants."""
    tasks_of_variants: dict[tuple[str, str], dict[str, None]] = {}  # by method and variant
    replaced: dict[ReplacedKey, list[Case]] = {}
    for scale in catalogue.scales:
        for key, paper in catalogue.papers.items():
            for variant, place in _locate_defined_variants(catalogue, key, scale).items():
                tasks_of_variants.setdefault(variant[1:], {})[variant.task] = None
                is_intervened = variant in paper.intervened_variants
                run = variant.make_run(seed=0)
                problems_of_run = _list_run_problems(catalogue, run, scale, is_intervened)
                problems.add(*_place(problems_of_run, place))
                if not problems_of_run:
                    for replaced_key in list_replaced_keys(catalogue, run, scale):
                        replaced.setdefault(replaced_key, []).append(Case(scale, run.task))
            if not catalogue.problems.lines:
                config = Config.model_validate({"scale": scale, "papers": [key], "extra": True})
                with problems.collect():
                    list_requested_runs(catalogue, config)
    problems.add(*describe_replaced_keys(replaced))
    for name, method in catalogue.methods.items():
        for variant_name, method_variant in method.variants.items():
            if (name, variant_name) in tasks_of_variants:
                continue
            # A variant that is inherited may be right only where papers ask for that of the base.
            tasks: dict[str, None] = {}
            for base in method.extended:
                tasks |= tasks_of_variants.get((base, variant_name), {})
            for (other, _), requested_tasks in tasks_of_variants.items():
                if other == name:
                    tasks |= requested_tasks
            lines = _check_unrequested(catalogue, name, variant_name, list(tasks))
            problems.add(*_place(lines, str(method_variant.blocks[-1].place)))


def _locate_defined_variants(catalogue: Catalogue, paper: str, scale: str) -> dict[VariantKey, str]:
    """Return the variants that a paper asks for at a scale and that the catalogue defines.

    Each with file and line of the first experiment that names it.
    """
    file = catalogue.root / "papers" / paper / "experiments.yaml"
    places: dict[VariantKey, str] = {}
    for keys, experiment in catalogue.papers[paper].experiments.map_at(scale).items():
        for variant in experiment.list_variants():
            if is_defined(catalogue, variant):
                places.setdefault(variant, locate(file, keys))
    return places


def _list_run_problems(
    catalogue: Catalogue, run: Run, scale: str, is_intervened: bool
) -> list[str]:
    """Return the problems of a run: first of single settings, then of all together.

    How settings go together is not known while wrong ones are left out.
    """
    problems = ErrorList()
    problems.add(*list_setting_problems(catalogue, run, scale))
    if not problems.lines and _has_right_entries(catalogue, run):
        with problems.collect():
            _resolve(catalogue, run, scale, is_intervened)
    return list(problems.lines)


def _has_right_entries(catalogue: Catalogue, run: Run | VariantKey) -> bool:
    """Whether the entries of a run's task and method have no wrong keys."""
    return catalogue.tasks[run.task].is_right and catalogue.methods[run.method].is_right


def _check_unrequested(
    catalogue: Catalogue, method: str, variant: str, requested_tasks: list[str]
) -> list[str]:
    """Return the problems of a variant that no paper asks for, on a task of the first of its kinds.

    requested_tasks: those on which papers ask for the method or a base of it; they are taken before
    others. There are none if it is right on a task of any kind at any scale; the problems are those
    of the first scale.
    """
    problems_of_first: list[str] = []
    for scale in catalogue.scales:
        kinds: set[str] = set()
        for name in dict.fromkeys([*requested_tasks, *catalogue.tasks]):
            kind = catalogue.tasks[name].kind
            if kind in kinds or kind not in catalogue.methods[method].kinds:
                continue
            kinds.add(kind)
            run = Run(name, method, variant, seed=0)
            problems = _list_run_problems(catalogue, run, scale, is_intervened=False)
            if not problems:
                return []
            problems_of_first = problems_of_first or problems
    return problems_of_first


def is_defined(catalogue: Catalogue, variant: VariantKey) -> bool:
    """Whether a task, method and variant are in the catalogue."""
    if variant.task not in catalogue.tasks or variant.method not in catalogue.methods:
        return False
    trained_variant, weights = split_weights(variant.variant)
    if trained_variant not in catalogue.methods[variant.method].variants:
        return False
    return not weights or weights in (START, *catalogue.tasks)


def _resolve(catalogue: Catalogue, run: Run, scale: str, is_intervened: bool) -> None:
    """Resolve everything that a run is given, and check names that only other modules define."""
    spec = resolve_run(catalogue, run, scale)
    evaluation = resolve_evaluation(catalogue, run, scale)
    if is_intervened:
        resolve_intervention(catalogue, run, scale)
    settings = f"settings of {run.variant_key}"
    data = resolve_data(catalogue, run.task, scale)
    with locate_errors(merge_settings(catalogue, run, scale)):
        _check_measures("evaluation.measures", evaluation.get_measures(), settings)
        _check_splits("evaluation.splits", evaluation.splits, data, settings)
        if not isinstance(spec, RunSpec):
            return
        selection = spec.training.selection
        if selection:
            _check_splits("training.validation", [selection.split], data, settings)
        _check_splits("training.also_keep", spec.training.kept_splits, data, settings)
        if selection:
            _check_metric(selection, spec.kind, settings)


def _check_measures(key: str, measures: dict[str, dict], settings: str) -> None:
    """Raise UserError unless a key names measures, with options that they have."""
    for name, content in measures.items():
        if name not in list_measures():
            suggestion = suggest_name(name, list_measures())
            raise UserError(f"{settings}: key '{key}' names '{name}'; {suggestion}")
        parse_measure_options(name, content, settings, (*key.split("."), name))


def _check_splits(key: str, splits: Sequence[str], data: DataSpec, settings: str) -> None:
    """Raise UserError unless the data set has all splits of a key."""
    names = data.options.list_splits()
    for split in splits:
        if split not in names:
            problem = f"names the split '{split}', which task {data.task} does not have"
            raise UserError(f"{settings}: key '{key}' {problem}; {suggest_name(split, names)}")


def _check_metric(selection: Validation, kind_name: str, settings: str) -> None:
    """Raise UserError unless the metric that chooses the best weights is of the validation."""
    kind = load_kind_settings(kind_name)
    metrics = list(kind.validation_metrics)
    if selection.is_decoded:
        measures = selection.get_measures()
        _check_measures("training.validation.decoding.measures", measures, settings)
        metrics += [*kind.metrics, *_list_metrics(measures)]
    if selection.metric not in metrics:
        problem = f"key 'training.validation' has the metric '{selection.metric}'"
        raise UserError(f"{settings}: {problem}; {suggest_name(selection.metric, metrics)}")


def _check_modules(file: Path, paper: Paper) -> Iterator[str]:
    """Yield unknown modules of analyses and figures, and wrong options of these."""
    for name, analysis in paper.analyses.items():
        yield from _check_module(file, ("analyses", name), analysis, ANALYSES)
    for name, display in paper.displays.items():
        if isinstance(display, FigureDisplay):
            yield from _check_module(file, ("displays", name), display, FIGURES)


def _check_module(
    file: Path, keys: tuple[str, str], entry: Analysis | FigureDisplay, package: str
) -> list[str]:
    """Return the problems of an entry's module and of its options."""
    modules = list_modules(package)
    if entry.module not in modules:
        return [describe_unknown(file, (*keys, "module"), entry.module, modules)]
    problems = ErrorList()
    problems.add(*check_definition(f"{package}.{entry.module}", ENTRY_FUNCTIONS[package]))
    with problems.collect():
        parse_options(entry.module, package, entry.options, file, (*keys, "options"))
    return list(problems.lines)


def _check_scores(file: Path, catalogue: Catalogue, paper: Paper) -> Iterator[str]:
    """Yield a sentence for each metric, split and the like that a cell's runs have at no scale.

    Each is named once per table, with the first cell that has it.
    """
    names_of_scores: dict[tuple[VariantKey, bool], dict[str, Collection[Any]]] = {}
    for name, display in paper.displays.items():
        if not isinstance(display, TableDisplay):
            continue
        reported = set()
        for variant, cell in display.list_run_cells():
            if not is_defined(catalogue, variant) or not _has_right_entries(catalogue, variant):
                continue
            case = (variant, cell.intervention is not None)
            if case not in names_of_scores:
                names_of_scores[case] = _list_score_names(catalogue, variant, cell)
            for key, names in names_of_scores[case].items():
                value = getattr(cell, key)
                is_free = value is None and key in SELECTED_BY_SOME
                if is_free or value in names or (key, value) in reported:
                    continue
                reported.add((key, value))
                line = locate(file, ("displays", name))
                parts = f"row '{cell.row}' and column '{cell.column}'"
                problem = f"{variant.task} has no {key} '{value}'"
                suggestion = suggest_name(str(value), dict.fromkeys(names))
                if key == "readout" and not names:
                    suggestion = "training.also_keep of its settings names what is kept"
                yield f"{line}: displays.{name}: {parts}: {problem}; {suggestion}"


def _list_score_names(
    catalogue: Catalogue,
    variant: VariantKey,
    cell: TableCell,
) -> dict[str, Collection[Any]]:
    """Return the metrics, splits and subsets of the scores of a variant.

    They are those under an intervention if the cell is. What is missing says nothing.
    """
    run = variant.make_run(seed=0)
    if cell.intervention is not None:
        return {"metric": METRICS} | _list_intervention_names(catalogue, run)
    task = catalogue.tasks[variant.task]
    evaluations = list(_list_evaluations(catalogue, run))
    if not evaluations:
        return {}
    measures: dict[str, dict] = {}
    splits: list[str] = []
    for evaluation in evaluations:
        measures |= evaluation.get_measures()
        splits += evaluation.splits
    names: dict[str, Collection[Any]] = {
        "metric": [*load_kind_settings(task.kind).metrics, *_list_metrics(measures)],
        "split": splits,
        "subset": ("all", *task.subsets),
    }
    kept = _list_kept_checkpoints(catalogue, run)
    if task.kind == "seq2seq" and kept is not None:  # other kinds have readouts of their own
        names["readout"] = kept
    return names


def _list_intervention_names(catalogue: Catalogue, run: Run) -> dict[str, Collection[Any]]:
    """Return what the interventions on a run have at any scale where its settings are right."""
    names: dict[str, list] = {}
    for scale in catalogue.scales:
        with suppress(UserError):
            settings = resolve_intervention(catalogue, run, scale)
            names.setdefault("pooling", []).extend(settings.poolings)
            names.setdefault("rate", []).extend(settings.rates)
            names.setdefault("intervention_seed", []).extend(settings.seeds)
    return {**names, "item_set": ITEM_SETS} if names else {}


def _list_kept_checkpoints(catalogue: Catalogue, run: Run) -> list[str] | None:
    """Return the checkpoints besides the best one that a run keeps at any scale.

    None if its settings are right at no scale.
    """
    kept: list[str] | None = None
    for scale in catalogue.scales:
        with suppress(UserError):
            kept = [*(kept or []), *resolve_run(catalogue, run, scale).kept_checkpoints]
    return kept


def _list_evaluations(catalogue: Catalogue, run: Run) -> Iterator[Evaluation]:
    """Yield how a run is scored at each scale where its settings are right."""
    for scale in catalogue.scales:
        with suppress(UserError):
            evaluation = resolve_evaluation(catalogue, run, scale)
            _check_measures("evaluation.measures", evaluation.get_measures(), "")
            yield evaluation


def _list_metrics(measures: dict[str, dict]) -> list[str]:
    """Return the metrics of measures, which are right."""
    metrics: list[str] = []
    for name, content in measures.items():
        metrics += parse_measure_options(name, content, "evaluation.measures").list_metrics()
    return metrics
