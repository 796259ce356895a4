"""Find every problem of config.yaml, catalogue/ and papers/ before anything runs, each with its file and line."""

import ast
import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from workflow_scripts.common.errors import Problems, UserError
from workflow_scripts.common.files import digest
from workflow_scripts.common.validation import locate, suggest_name
from workflow_scripts.config.catalogue import START, Catalogue, Paper, Run, VariantKey
from workflow_scripts.config.display_schema import Analysis, FigureDisplay, TableCell, TableDisplay
from workflow_scripts.config.layers import locate_errors, merge_settings
from workflow_scripts.config.loading import load_config, read_catalogue
from workflow_scripts.config.requested import list_requested_runs
from workflow_scripts.config.schema import Config
from workflow_scripts.config.specs import (
    resolve_candidates,
    resolve_data,
    resolve_evaluation,
    resolve_intervention,
    resolve_run,
)
from workflow_scripts.interventions.settings import METRICS
from workflow_scripts.tasks.packages import load_traits
from workflow_scripts.tasks.run_spec import RunSpec
from workflow_scripts.tasks.settings import Evaluation, Validation

PACKAGE = Path(__file__).parents[1]
# Parts of a message that differ from run to run.
OF_A_RUN = re.compile(r"settings of \S+: |options of task \S+ at scale \S+: |task \S+: |init: run \S+ \S+ ")
OPTION_READERS = ("merge_options", "read_options")  # functions whose keyword arguments are a module's options


def find_problems(root: str | Path = ".") -> list[str]:
    """Return all problems, one line each: file, line, key, what is wrong and what to do.

    What depends on a wrong entry is checked once that entry is right.
    """
    problems = Problems()
    with problems.collect():
        load_config(root=root)
    catalogue = read_catalogue(str(root), os.getcwd())
    problems.add(*catalogue.problems.lines)
    _check_tasks(catalogue, problems)
    _check_runs(catalogue, problems)
    for key, paper in catalogue.papers.items():
        file = catalogue.root / "papers" / key / "displays.yaml"
        with problems.collect():
            problems.add(*_check_modules(file, paper), *_check_scores(file, catalogue, paper))
    # One mistake may show in many runs.
    return list({OF_A_RUN.sub("", line): line for line in problems.lines}.values())


def check_files(stamp: Path) -> None:
    """Raise UserError with all problems of the files of this project.

    If there are none, `stamp` stores the sizes and times of the files, so that the next call has nothing to check.
    """
    files = [Path("config.yaml")]
    for folder in (Path("catalogue"), Path("papers"), PACKAGE):
        files += [file for file in folder.rglob("*") if file.suffix in (".yaml", ".csv", ".py")]
    found = digest([[str(file), (stat := file.stat()).st_size, stat.st_mtime_ns] for file in sorted(files)])
    if stamp.exists() and stamp.read_text() == found:
        return
    if problems := find_problems():
        raise UserError("\n".join(problems))
    stamp.parent.mkdir(exist_ok=True)
    stamp.write_text(found)


def _check_tasks(catalogue: Catalogue, problems: Problems) -> None:
    """Find problems of the data of each task at each scale."""
    for scale in catalogue.scales:
        for name, task in catalogue.tasks.items():
            with problems.collect():
                resolve_data(catalogue, name, scale)
            if any(block.content.intervention for block in task.blocks):
                with problems.collect():
                    resolve_candidates(catalogue, name, scale)


def _check_runs(catalogue: Catalogue, problems: Problems) -> None:
    """Find problems of the specs of all runs that papers ask for, and of variants that none asks for."""
    asked = set()
    for scale in catalogue.scales:
        for key, paper in catalogue.papers.items():
            named = [each for experiment in paper.experiments.list_at(scale) for each in experiment.list_variants()]
            for variant in (each for each in named if is_known(catalogue, each)):
                asked.add(variant[1:])
                with problems.collect():
                    _resolve(catalogue, Run(*variant, seed=0), scale, variant in paper.intervened_variants)
            if not catalogue.problems.lines:
                config = Config.model_validate({"scale": scale, "papers": [key], "extra": True})
                with problems.collect():
                    list_requested_runs(catalogue, config)
    for name, method in catalogue.methods.items():
        for variant in (each for each in method.variants if (name, each) not in asked):
            problems.add(*_check_unasked(catalogue, name, variant))


def _check_unasked(catalogue: Catalogue, method: str, variant: str) -> list[str]:
    """Return the problems of a variant on a task of the first of its kinds, none if it is right on one of any kind."""
    found: dict[str, list[str]] = {}
    for scale in list(catalogue.scales)[:1]:
        for name, task in catalogue.tasks.items():
            if task.kind in catalogue.methods[method].kinds and task.kind not in found:
                problems = Problems()
                with problems.collect():
                    _resolve(catalogue, Run(name, method, variant, seed=0), scale, False)
                found[task.kind] = list(problems.lines)
    return next(iter(found.values()), []) if all(found.values()) else []


def is_known(catalogue: Catalogue, variant: VariantKey) -> bool:
    """Whether a task, method and variant are in the catalogue."""
    task, method, name = variant
    name, _, weights = name.partition("@")
    known = task in catalogue.tasks and method in catalogue.methods and name in catalogue.methods[method].variants
    return known and weights in ("", START, *catalogue.tasks)


def _resolve(catalogue: Catalogue, run: Run, scale: str, intervened: bool) -> None:
    """Resolve everything that a run is given, and check names in it that only other modules know."""
    spec, evaluation = resolve_run(catalogue, run, scale), resolve_evaluation(catalogue, run, scale)
    if intervened:
        resolve_intervention(catalogue, run, scale)
    where = f"settings of {'/'.join(run.unseeded)}"
    prepare = resolve_data(catalogue, run.task, scale).prepare
    named_splits: dict[str, Sequence[Any]] = {"evaluation.splits": evaluation.splits}
    if isinstance(spec, RunSpec):
        selection = spec.training.selection
        named_splits["training.validation"] = [selection.split] if selection else []
        named_splits["training.also_keep"] = spec.training.kept_splits
    with locate_errors(merge_settings(catalogue, run, scale)):
        for name in evaluation.measures:
            if not (PACKAGE / f"evaluation/{name}.py").exists():
                modules = [path.stem for path in (PACKAGE / "evaluation").glob("*.py")]
                raise UserError(f"{where}: key 'evaluation.measures' names '{name}'; {suggest_name(name, modules)}")
        known_splits = _list_strings(prepare)
        for key, splits in named_splits.items():
            for split in splits:
                if split not in known_splits:
                    what = f"{where}: key '{key}' names the split '{split}', which is not in the code of {prepare}"
                    raise UserError(f"{what}; {suggest_name(str(split), known_splits)}")
        if isinstance(spec, RunSpec) and spec.training.selection:
            _check_metric(spec.training.selection, spec.kind, where)


def _check_metric(selection: Validation, kind: str, where: str) -> None:
    """Raise UserError unless the metric that chooses the best weights is one of the validation's."""
    traits = load_traits(kind)
    known = list(traits.validation_metrics)
    if traits.decoding and selection.decoding is not None:
        known += [*traits.metrics, *_list_metrics(selection.decoding.get("measures", {}))]
    if selection.metric not in known:
        what = f"{where}: key 'training.validation' has the metric '{selection.metric}'"
        raise UserError(f"{what}; {suggest_name(selection.metric, known)}")


@cache
def _list_strings(module: str) -> frozenset[str]:
    """Return the words in the code of a data module, and of what it imports from data/, that may name its splits."""
    file = PACKAGE.parent / f"{module.replace('.', '/')}.py"
    nodes = list(ast.walk(ast.parse(file.read_text() if file.exists() else "")))
    found = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    found += [node.arg for node in nodes if isinstance(node, ast.keyword) and node.arg]
    imported = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    data = (name for name in imported if name.startswith("workflow_scripts.data."))
    return frozenset(filter(str.isidentifier, found)).union(*map(_list_strings, data))


def _check_modules(file: Path, paper: Paper) -> Iterator[str]:
    """Yield unknown modules of analyses and figures, and options that these do not read."""
    for name, analysis in paper.analyses.items():
        yield from _check_module(file, ("analyses", name), analysis, PACKAGE / "analyses")
    for name, display in paper.displays.items():
        if isinstance(display, FigureDisplay):
            yield from _check_module(file, ("displays", name), display, PACKAGE / "reporting/figures")


def _check_module(file: Path, keys: tuple[str, str], entry: Analysis | FigureDisplay, folder: Path) -> Iterator[str]:
    modules = {path.stem: path for path in folder.glob("*.py")}
    if entry.module not in modules:
        where = f"{locate(file, (*keys, 'module'))}: key '{'.'.join(keys)}.module'"
        yield f"{where} names '{entry.module}'; {suggest_name(entry.module, modules)}"
        return
    if not entry.options:
        return
    defaults = _read_default_options(modules[entry.module])
    for option, value in entry.options.items():
        where = f"{locate(file, (*keys, 'options', option))}: {'.'.join(keys)}"
        if option not in defaults:
            yield f"{where}: unknown option '{option}'; {suggest_name(option, defaults)}"
        elif not _has_type_of(value, defaults[option]):
            yield f"{where}: option '{option}' is {str(value)[:100]}; give a value such as {defaults[option]!r}"


def _read_default_options(module: Path) -> dict[str, object]:
    """Read the options of an analysis or figure with their defaults from its code, because its imports are slow."""
    calls = [node for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, ast.Call)]
    reading = [call for call in calls if getattr(call.func, "attr", getattr(call.func, "id", "")) in OPTION_READERS]
    return {word.arg: _read_value(word.value, module) for call in reading for word in call.keywords if word.arg}


def _read_value(node: ast.expr, file: Path) -> Any:
    """Return the literal value of an expression, without importing its module. Raises UserError if it is computed."""
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise UserError(f"{file}:{node.lineno}: {ast.unparse(node)} is computed; write the value itself") from None


def _has_type_of(value: object, default: object) -> bool:
    """Whether a value has the type of the default; whole numbers are numbers, and None says nothing."""
    if default is None or isinstance(default, bool):
        return default is None or isinstance(value, bool)
    if isinstance(default, float):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, type(default)) and not isinstance(value, bool)


def _check_scores(file: Path, catalogue: Catalogue, paper: Paper) -> Iterator[str]:
    """Yield tables with a metric, split or subset that the runs of a cell have at no scale: the first such cell."""
    reported = set()
    names_of: dict[tuple[VariantKey, bool], dict[str, Collection[str]]] = {}
    for name, display in paper.displays.items():
        if not isinstance(display, TableDisplay):
            continue
        for variant, cell in display.list_run_cells():
            if not is_known(catalogue, variant):
                continue
            case = (variant, cell.intervention is not None)
            if case not in names_of:
                names_of[case] = _list_score_names(catalogue, variant, cell)
            for key, names in names_of[case].items():
                value = getattr(cell, key)
                if not names or value in names or (name, key, value) in reported:
                    continue
                reported.add((name, key, value))
                where = f"{locate(file, ('displays', name))}: displays.{name}"
                what = f"row '{cell.row}' and column '{cell.column}': {variant[0]} has no {key} '{value}'"
                yield f"{where}: {what}; {suggest_name(str(value), names)}"


def _list_score_names(catalogue: Catalogue, variant: VariantKey, cell: TableCell) -> dict[str, Collection[str]]:
    """Return the metrics, splits and subsets of the scores of a variant, of those under an intervention if the cell is.

    An empty list says nothing.
    """
    if cell.intervention is not None:
        return {"metric": METRICS}
    task = catalogue.tasks[variant[0]]
    evaluations = list(_list_evaluations(catalogue, Run(*variant, seed=0)))
    measures: dict[str, dict] = {}
    for evaluation in evaluations:
        measures |= evaluation.measures
    return {
        "metric": (*load_traits(task.kind).metrics, *_list_metrics(measures)),
        "split": tuple(split for evaluation in evaluations for split in evaluation.splits),
        "subset": ("all", *task.subsets),
    }


def _list_evaluations(catalogue: Catalogue, run: Run) -> Iterator[Evaluation]:
    """Yield how a run is scored at each scale where its settings are right."""
    for scale in catalogue.scales:
        with suppress(UserError):
            yield resolve_evaluation(catalogue, run, scale)


def _list_metrics(measures: dict[str, dict]) -> Iterator[str]:
    """Yield the metrics of modules of evaluation/: METRICS in their code, or the names of their options."""
    for name, options in measures.items():
        yield from options
        yield from _read_metrics(name)


@cache
def _read_metrics(measure: str) -> tuple[str, ...]:
    """Return METRICS of a module of evaluation/."""
    file = PACKAGE / "evaluation" / f"{measure}.py"
    for node in ast.parse(file.read_text() if file.exists() else "").body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "METRICS":
            return tuple(_read_value(node.value, file))
    return ()
