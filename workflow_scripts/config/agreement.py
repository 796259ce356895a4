"""Check that the files of catalogue/ and papers/ agree.

Each function yields one line per problem.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from workflow_scripts.common.run_names import START, VariantKey, split_weights
from workflow_scripts.common.validation import WORD, describe_unknown, locate, suggest_name
from workflow_scripts.config.analysis_plan import AnalysisPlan
from workflow_scripts.config.axes import Units
from workflow_scripts.config.catalogue import Catalogue, Paper
from workflow_scripts.config.claim_needs import find_unmeasured_cell
from workflow_scripts.config.display_schema import (
    AnalysedRuns,
    Claim,
    FigureDisplay,
    Runs,
    TableCell,
    TableDisplay,
)
from workflow_scripts.config.entries import Block
from workflow_scripts.config.published_checks import check_number, check_published_columns
from workflow_scripts.config.schema import PLANNED, Condition, Experiment, list_names
from workflow_scripts.evaluation.published_numbers import Key, Published, read_published
from workflow_scripts.tasks.packages import list_packages

NAME = re.compile(WORD)
STAR = "*"
LAYER = re.compile(r"(100|[0-9]{1,2})%")
INTERVENTIONS = ("cap", "synonyms")
KIND_OF_INTERVENTIONS = "prompt"
# Of the scores under an intervention alone.
KEYS_OF_INTERVENTIONS = ("layer", "pooling", "rate", "intervention_seed", "item_set")
RULE_OF_NAMES = """needs at most 100 letters a-z, A-Z, digits, '.', '_' and '-', \
and start with a letter or digit"""


def check_published(folder: Path, paper: Paper, units: Units) -> Iterator[str]:
    """Yield displays without a metric, and where published numbers do not fit displays or claims.

    These are numbers of cells that do not exist, in another unit or of another value than is
    printed, and claims about cells without a number. `units`: of the metrics of the catalogue.
    """
    yield from _check_metrics(folder / "displays.yaml", paper)
    wrong_columns = list(check_published_columns(folder / "published.csv"))
    if wrong_columns:
        yield from wrong_columns
        return
    published = read_published(folder / "published.csv")
    printed_cells = {"/".join(key) for key in published}
    empty_cells = set()
    for key, cell in paper.cells.items():
        has_results = cell.analysis is not None or cell.list_variants()
        if not has_results and key not in printed_cells:
            empty_cells.add(key)
    for claim in paper.claims:
        for key in empty_cells.intersection(claim.list_cells()):
            line = locate(folder / "claims.yaml", ("claims",))
            lacking = f"{key} has neither a run nor a number in published.csv"
            yield f"{line}: claim '{claim.claim}': {lacking}; name another cell"
    for parts, number in published.items():
        name, key = parts[0], "/".join(parts)
        display = paper.displays.get(name)
        if display is None:
            suggestion = suggest_name(name, paper.displays)
            yield f"{number.where}: no display '{name}' in displays.yaml; {suggestion}"
        elif isinstance(display, TableDisplay) and key not in paper.cells:
            suggestion = suggest_name(key, paper.cells)
            yield f"{number.where}: no cell '{key}' in displays.yaml; {suggestion}"
        else:
            yield from _check_published_number(paper.cells.get(key), parts, number, units)


def _check_published_number(
    cell: TableCell | None, key: Key, number: Published, units: Units
) -> Iterator[str]:
    """Yield what is wrong with a number of a table's cell, or of a figure, which has no cells."""
    name = f"cell '{'/'.join(key)}'"
    if cell is None:
        unit, _ = units.get(key.metric, (None, 0))
        yield from check_number(name, number, unit, is_bounded=False)
    else:
        # A gain in percent of another score may be above 100.
        yield from check_number(name, number, cell.unit, is_bounded=not cell.relative)


def _check_metrics(file: Path, paper: Paper) -> Iterator[str]:
    """Yield a line for each table with cells without a metric, and for each without a unit.

    It names the first of these cells.
    """
    for name, display in paper.displays.items():
        if not isinstance(display, TableDisplay):
            continue
        for key in ("metric", "unit"):
            lacking = [cell for cell in display.cells if getattr(cell, key) is None]
            if lacking:
                line = locate(file, ("displays", name))
                parts = f"row '{lacking[0].row}' and column '{lacking[0].column}'"
                yield f"{line}: displays.{name}: {parts} name no {key}; one of them must"


def check_labels(file: Path, paper: Paper) -> Iterator[str]:
    """Yield labels that two rows or two columns of a table have: a score would be in both cells.

    `*` is no label: in claims it means any row or column.
    """
    for name, display in paper.displays.items():
        if not isinstance(display, TableDisplay):
            continue
        labels_of_sides = {
            "row": [row.row for row in display.rows],
            "column": [column.column for column in display.columns],
        }
        for side, labels in labels_of_sides.items():
            place = f"{locate(file, ('displays', name))}: displays.{name}"
            for label in dict.fromkeys(labels):
                if labels.count(label) > 1:
                    yield f"{place}: two {side}s are called '{label}'; give each another name"
                if label == STAR:
                    yield f"{place}: a {side} is called '{STAR}', any {side} of claims; rename it"


def check_claims(paper: Paper, lines: list[str]) -> Iterator[str]:
    """Yield what is wrong with the cells that claims compare. `lines`: file and line of each claim.

    A misspelt name would otherwise be found after all trainings, or never.
    """
    names = set()
    for claim, line in zip(paper.claims, lines, strict=True):
        if claim.claim in names:
            yield f"{line}: claim '{claim.claim}' is listed twice; give one of them another name"
        names.add(claim.claim)
        yield from _check_sides(paper, claim, line)
        yield from _check_stars(claim, line)
        printed = paper.cells.get(claim.published or "")
        if printed is not None and printed.unit is not None and printed.unit != claim.unit:
            units = f"{claim.unit}, its printed effect in {printed.unit}"
            yield f"{line}: claim '{claim.claim}' is in {units}; name another cell"
        if claim.left == claim.right:
            same = f"compares {claim.left} with itself"
            yield f"{line}: claim '{claim.claim}' {same}; name two cells"
        if claim.relation != "falls_with":
            yield from _check_likeness(paper, claim, line)


def _check_stars(claim: Claim, line: str) -> Iterator[str]:
    """Yield sides of a claim with a `*` too many or too few."""
    for side, cell in claim.list_side_cells():
        stars = cell.split("/").count(STAR)
        key = f"{line}: key '{claim.claim}.{side}' is '{cell}'"
        if claim.relation == "falls_with" and side in ("left", "right"):
            if stars != 1:
                rule = f"relation falls_with compares the cells that one '{STAR}' matches"
                yield f"{key}; {rule}: write it in the place of the row or the column"
        elif stars:
            yield f"{key}; '{STAR}' goes with relation falls_with alone: name one cell"


def check_given(paper: Paper, lines: list[str]) -> Iterator[str]:
    """Yield claims that `given` names and that do not exist, or that need the claim itself.

    `lines`: file and line of each claim.
    """
    for claim, line in zip(paper.claims, lines, strict=True):
        if claim.given is None:
            continue
        key = f"{line}: key '{claim.claim}.given' names '{claim.given}'"
        if claim.given not in paper.claims_by_name:
            yield f"{key}; {suggest_name(claim.given, paper.claims_by_name)}"
        elif claim.claim in _list_given(paper, claim.given):
            itself = "this claim" if claim.given == claim.claim else "which is given this claim"
            yield f"{key}, {itself}; name another claim"


def _list_given(paper: Paper, name: str) -> list[str]:
    """Return a claim, the one that it is given, and so on."""
    given: list[str] = []
    following: str | None = name
    while following in paper.claims_by_name and following not in given:
        given.append(following)
        following = paper.claims_by_name[following].given
    return given


def check_experiments(file: Path, paper: Paper) -> Iterator[str]:
    """Yield scales of experiments at which they do not run, and variants that are listed twice."""
    experiments = paper.experiments
    for number, experiment in enumerate(experiments.demo):
        keys = ("demo", number)
        if experiment.at is not None:
            line = locate(file, (*keys, "at"))
            yield f"{line}: key 'demo.{number}.at': the list `demo` runs at demo alone; remove it"
    for number, experiment in enumerate(experiments.experiments):
        if "demo" in list_names(experiment.at or []):
            line = locate(file, ("experiments", number, "at"))
            advice = "write the runs of demo in the list `demo`"
            yield f"{line}: key 'experiments.{number}.at' names demo, which runs `demo`; {advice}"
    for part in ("demo", "experiments"):
        for number, experiment in enumerate(getattr(experiments, part)):
            keys = (part, number)
            for scale in experiment.seeds:
                if (scale == "demo") != (part == "demo"):
                    line = locate(file, (*keys, "seeds", scale))
                    key = f"key '{part}.{number}.seeds.{scale}'"
                    yield f"{line}: {key}: the list `{part}` does not run at {scale}; remove it"
            for method in experiment.methods.keys() & experiment.ours.keys():
                for name in experiment.ours[method]:
                    if name in experiment.methods[method]:
                        line = locate(file, (*keys, "ours", method))
                        key = f"key '{part}.{number}.ours.{method}'"
                        yield f"{line}: {key} names '{name}', as `methods` does; remove one"


def check_measured_claims(paper: Paper, lines: list[str]) -> Iterator[str]:
    """Yield claims that no experiment measures. `lines`: file and line of each claim."""
    asked: set[VariantKey] = set()
    for experiment in (*paper.experiments.demo, *paper.experiments.experiments):
        asked.update(experiment.list_variants())
    for claim, line in zip(paper.claims, lines, strict=True):
        cell = find_unmeasured_cell(paper, claim, asked)
        if cell is not None:
            problem = f"no experiment of experiments.yaml measures {cell}"
            yield f"{line}: claim '{claim.claim}': {problem}; add its method, or remove the claim"


def _check_sides(paper: Paper, claim: Claim, line: str) -> Iterator[str]:
    """Yield displays and cells of a claim that do not exist."""
    for side, cell in claim.list_side_cells():
        place = f"{line}: key '{claim.claim}.{side}'"
        display = cell.split("/")[0]
        if display not in paper.displays:
            yield f"{place} names '{display}'; {suggest_name(display, paper.displays)}"
        elif not paper.match_cells(cell):
            suggestion = suggest_name(cell, paper.cells)
            yield f"{place}: no cell '{cell}' in displays.yaml; {suggestion}"


def _check_likeness(paper: Paper, claim: Claim, line: str) -> Iterator[str]:
    """Yield whether the cells of a claim differ in their unit or their metric.

    An analysis may have several metrics of one kind, and the floor of a score is often that of
    another.
    """
    units: dict[str, str] = {}  # unit -> the first side that has it
    metrics: dict[str, str] = {}
    for side, pattern in claim.list_side_cells():
        if side == "published":
            continue
        for cell in paper.match_cells(pattern):
            units.setdefault(cell.unit or "", pattern)
            if cell.analysis is None and side != "floor":
                metrics.setdefault(cell.metric or "", pattern)
    for quantity, sides in (("units", units), ("metrics", metrics)):
        if len(sides) > 1:
            sides_in_words = [f"{side} in {name}" for name, side in sides.items()]
            unlike = f"compares unlike {quantity}, {' and '.join(sides_in_words)}"
            yield f"{line}: claim '{claim.claim}' {unlike}; name cells of one"


def check_plans(folder: Path, paper: Paper) -> Iterator[str]:
    """Yield claims of plans that do not exist, that two plans name, or that lack a threshold."""
    plan_of_claim: dict[str, str] = {}
    for name, plan in paper.plans.items():
        yield from _check_plan(folder / name, plan, paper.claims_by_name)
        for claim in (*(entry.claim for entry in plan.primary), *plan.secondary):
            if claim in plan_of_claim:
                other = f"is also in {plan_of_claim[claim]}"
                line = locate(folder / name, _find_planned_claim(plan, claim))
                yield f"{line}: claim '{claim}' {other}; a claim is judged by one plan"
            plan_of_claim[claim] = name


def _find_planned_claim(plan: AnalysisPlan, claim: str) -> tuple[str, int]:
    """Return the keys at which a plan names a claim."""
    if claim in plan.secondary:
        return "secondary", plan.secondary.index(claim)
    return "primary", [entry.claim for entry in plan.primary].index(claim)


def _check_plan(file: Path, plan: AnalysisPlan, claims: dict[str, Claim]) -> Iterator[str]:
    """Yield claims of a plan that do not exist, and measures that do not fit the plan."""
    for number, entry in enumerate(plan.primary):
        keys = ("primary", number)
        if entry.claim not in claims:
            yield describe_unknown(file, (*keys, "claim"), entry.claim, claims)
        same_sign = entry.control.same_sign
        if same_sign and same_sign not in claims:
            yield describe_unknown(file, (*keys, "control", "same_sign"), same_sign, claims)
        if entry.claim in claims:
            is_success_rate = claims[entry.claim].measure == "success_rate"
            if is_success_rate != entry.counts_successes:
                rule = "threshold goes with measure success_rate, and only with it"
                yield f"{locate(file, keys)}: claim '{entry.claim}': {rule}"
            if claims[entry.claim].measure == "superiority" and entry.measure is None:
                rule = "move `measure: superiority` here from claims.yaml"
                yield f"{locate(file, keys)}: claim '{entry.claim}': {rule}"
    for number, name in enumerate(plan.secondary):
        if name not in claims:
            yield describe_unknown(file, ("secondary", number), name, claims)


def check_planned_seeds(file: Path, paper: Paper) -> Iterator[str]:
    """Yield a message for each `planned` seeds of experiments.yaml that no plan names.

    That is at a scale without a plan. Of several plans, each must name the variant.
    """
    for scale in paper.experiments.list_planned_scales():
        plans = paper.list_plans(scale)
        if not plans:
            line = locate(file, _find_planned_key(paper, scale))
            missing = "and no analysis plan is of that scale"
            yield f"{line}: seeds at {scale} are `planned`, {missing}; name them"
        if len(plans) > 1:
            yield from _check_unnamed_variants(file, paper, scale)


def _find_planned_key(paper: Paper, scale: str) -> tuple[str | int, ...]:
    """Return the keys of the first `planned` seeds at a scale."""
    experiments = paper.experiments
    if experiments.seeds.get(scale) != PLANNED:
        for keys, experiment in experiments.map_at(scale).items():
            if experiment.seeds[scale] == PLANNED:
                return keys
    return "seeds", scale


def _check_unnamed_variants(file: Path, paper: Paper, scale: str) -> Iterator[str]:
    """Yield experiments with `planned` seeds and a variant that none of several plans names."""
    planned_seeds = paper.list_planned_seeds(scale)
    plans = " and ".join(paper.list_plans(scale))
    for keys, experiment in paper.experiments.map_at(scale).items():
        if experiment.seeds[scale] != PLANNED:
            continue
        variants = experiment.list_variants()
        unnamed = [variant for variant in variants if variant not in planned_seeds]
        if unnamed:
            problem = f"{'/'.join(unnamed[0])} is in no claim of {plans}"
            yield f"{locate(file, keys)}: seeds at {scale} are `planned`, and {problem}; name them"


def check_controls(folder: Path, paper: Paper) -> Iterator[str]:
    """Yield cells of analysis plans that do not exist."""
    for name, plan in paper.plans.items():
        for number, entry in enumerate(plan.primary):
            for cell in entry.control.cells:
                if cell not in paper.cells:
                    line = locate(folder / name, ("primary", number, "control"))
                    missing = f"no cell '{cell}' in displays.yaml"
                    suggestion = suggest_name(cell, paper.cells)
                    yield f"{line}: control of claim '{entry.claim}': {missing}; {suggestion}"


def check_characters(catalogue: Catalogue) -> Iterator[str]:
    """Yield names that could leave results/ as a path, or be more than a word for a shell."""
    scales = catalogue.root / "catalogue/scales.yaml"
    places = [(name, locate(scales, (name,))) for name in catalogue.scales]
    for name, entry in (*catalogue.tasks.items(), *catalogue.methods.items()):
        own_place = next(block.place for block in entry.blocks if block.place.entry == (name,))
        place = locate(catalogue.root / own_place.file, own_place.entry)
        places.append((name, place))
        if name == START and name in catalogue.tasks:
            yield f"{place}: a task cannot be called '{START}', which names weights; rename it"
    for name, paper in catalogue.papers.items():
        folder = catalogue.root / "papers" / name
        places.append((name, str(folder)))
        for part, entries in (("displays", paper.displays), ("analyses", paper.analyses)):
            places += [(key, locate(folder / "displays.yaml", (part, key))) for key in entries]
    for name, place in places:
        if not NAME.fullmatch(name):
            yield f"{place}: the name {name[:100]!r} {RULE_OF_NAMES}"


def check_conditions(catalogue: Catalogue) -> Iterator[str]:
    """Yield names in the condition of a rule that match nothing."""
    names_by_key: dict[str, Collection[str]] = {
        "task": catalogue.tasks,
        "kind": list_packages("tasks"),
        "scale": catalogue.scales,
    }
    for block, condition in _iterate_conditions(catalogue):
        for key, names in names_by_key.items():
            for pattern in list_names(getattr(condition, key) or []):
                if not any(fnmatchcase(name, pattern) for name in names):
                    suggestion = suggest_name(pattern, names)
                    yield f"{block.place / key}: no {key} '{pattern}'; {suggestion}"


def _iterate_conditions(catalogue: Catalogue) -> Iterator[tuple[Block, Condition]]:
    """Yield the blocks of all tasks and methods that have a condition, each with it."""
    for entry in (*catalogue.tasks.values(), *catalogue.methods.values()):
        for block in entry.blocks:
            if isinstance(block.content, Condition):
                yield block, block.content


@dataclass(frozen=True)
class NameChecker:
    """Yields a problem for each name in a file of papers/ or catalogue/ that is not defined."""

    catalogue: Catalogue
    file: str

    def check_name(self, name: str, names: Collection[str], *keys: str | int) -> Iterator[str]:
        """Yield a name at `keys` of the file that is not among `names`."""
        if name not in names:
            yield describe_unknown(self.catalogue.root / self.file, keys, name, names)

    def check_task(self, task: str | None, *keys: str | int) -> Iterator[str]:
        """Yield a task that is not in the catalogue."""
        if task is not None:
            yield from self._check_entry("task", task, self.catalogue.tasks, *keys, "task")

    def check_method(self, method: str, *keys: str | int) -> Iterator[str]:
        """Yield a method at `keys` that is not in the catalogue."""
        yield from self._check_entry("method", method, self.catalogue.methods, *keys)

    def _check_entry(
        self, kind: str, name: str, names: Collection[str], *keys: str | int
    ) -> Iterator[str]:
        """Yield a name at `keys` that no file in the folder of a kind of entry has."""
        if name not in names:
            place = locate(self.catalogue.root / self.file, keys)
            key = ".".join(map(str, keys))
            missing = f"no {kind} '{name}' in catalogue/{kind}s/"
            yield f"{place}: key '{key}': {missing}; {suggest_name(name, names)}"

    def check_weights(self, weights: str | None, *keys: str | int) -> Iterator[str]:
        """Yield given weights that are neither a task nor `start`."""
        if weights:
            yield from self.check_name(weights, (START, *self.catalogue.tasks), *keys, "weights")

    def check_variants(
        self,
        method: str | None,
        variants: Collection[str],
        weights: str | None,
        *keys: str | int,
        key: str = "variant",
    ) -> Iterator[str]:
        """Yield a method that is not in the catalogue, and variants that it does not have.

        `weights`: given weights of the variants; they are checked, too. key: that names them.
        """
        if method is None:
            return
        methods = self.catalogue.methods
        yield from self.check_method(method, *keys, "method")
        for variant in variants:
            name, own_weights = split_weights(variant)
            if method in methods:
                yield from self.check_name(name, methods[method].variants, *keys, key)
            yield from self.check_weights(own_weights or weights, *keys)

    def check_cell(self, cell: TableCell, *keys: str | int) -> Iterator[str]:
        """Yield names of a cell; scores of an analysis may have names of their own."""
        if cell.analysis is not None:
            return
        yield from self.check_task(cell.task, *keys)
        variants = cell.variant or []
        if isinstance(variants, str):
            variants = [variants]
        elif isinstance(variants, dict):
            for task in variants:
                yield from self.check_task(task, *keys)
            variants = list(variants.values())
        yield from self.check_variants(cell.method, variants, cell.weights, *keys)
        if cell.over is not None:
            yield from self.check_variants(cell.method, [cell.over], None, *keys, key="over")
        yield from self._check_selected_scores(cell, *keys)

    def _check_selected_scores(self, cell: TableCell, *keys: str | int) -> Iterator[str]:
        """Yield what a cell selects that no score has."""
        if cell.variant_key is None:
            return
        yield from self._check_intervention(cell.intervention, [cell.task or ""], *keys)
        place = f"{locate(self.catalogue.root / self.file, keys)}: {'.'.join(map(str, keys))}"
        for key in KEYS_OF_INTERVENTIONS:
            if getattr(cell, key) is not None and cell.intervention is None:
                rule = f"cells have `{key}` and no `intervention`"
                yield f"{place}: {rule}; name one of {', '.join(INTERVENTIONS)}, or remove it"
        if not _is_layer(cell.layer):
            rule = "write the index of a block, or a share of the depth such as 25%"
            yield f"{place}: layer is {cell.layer!r}; {rule}"
        if cell.relative and cell.over is None:
            rule = "cells have `relative` and no `over`"
            yield f"{place}: {rule}; name the variant of which it is a gain"

    def _check_intervention(
        self, intervention: str | None, tasks: list[str], *keys: str | int
    ) -> Iterator[str]:
        """Yield an intervention that does not exist, or that runs on these tasks cannot have."""
        if intervention is None:
            return
        yield from self.check_name(intervention, INTERVENTIONS, *keys, "intervention")
        for task in tasks:
            entry = self.catalogue.tasks.get(task)
            if entry is not None and entry.kind != KIND_OF_INTERVENTIONS:
                place = locate(self.catalogue.root / self.file, (*keys, "intervention"))
                key = f"key '{'.'.join(map(str, keys))}.intervention'"
                rule = f"{task} is of the kind {entry.kind}, which has none"
                yield f"{place}: {key}: {rule}; name a task of the kind {KIND_OF_INTERVENTIONS}"

    def check_runs(self, runs: Runs | AnalysedRuns, *keys: str | int) -> Iterator[str]:
        """Yield names of an entry of `runs`."""
        for task in list_names(runs.task):
            yield from self.check_task(task, *keys)
        yield from self.check_variants(runs.method, [runs.variant], None, *keys)
        yield from self._check_intervention(runs.intervention, list_names(runs.task), *keys)

    def check_experiment(self, experiment: Experiment, *keys: str | int) -> Iterator[str]:
        """Yield names of an entry of experiments.yaml."""
        methods = self.catalogue.methods
        for task in list_names(experiment.task):
            yield from self.check_task(task, *keys)
        yield from self.check_weights(experiment.weights, *keys)
        for key in ("methods", "ours"):
            for method, variants in getattr(experiment, key).items():
                place = (*keys, key, method)
                yield from self.check_method(method, *place)
                if method in methods:
                    for variant in variants:
                        yield from self.check_name(variant, methods[method].variants, *place)
        for scale in (*experiment.seeds, *list_names(experiment.at or [])):
            yield from self.check_name(scale, self.catalogue.scales, *keys)


def _is_layer(layer: int | str | None) -> bool:
    """Whether a cell may have this layer: an index, a share of the depth, or none."""
    if isinstance(layer, str):
        return LAYER.fullmatch(layer) is not None
    return layer is None or layer >= 0


def check_names(catalogue: Catalogue) -> Iterator[str]:
    """Yield a message for each name of something that is not defined.

    Those are tasks, methods, variants, scales, analyses and papers.
    """
    checker = NameChecker(catalogue, "catalogue/scales.yaml")
    for name, scale in catalogue.scales.items():
        for method in scale.jobs.memory_of:
            keys = (name, "jobs", "memory_of", method)
            yield from checker.check_method(method, *keys)
        for number, method in enumerate(scale.jobs.large_gpu):
            keys = (name, "jobs", "large_gpu", number)
            yield from checker.check_method(method, *keys)
    for name, paper in catalogue.papers.items():
        checker = NameChecker(catalogue, f"papers/{name}/displays.yaml")
        yield from _check_display_names(checker, paper)
        for file, plan in paper.plans.items():
            checker = NameChecker(catalogue, f"papers/{name}/{file}")
            yield from checker.check_name(plan.scale, catalogue.scales, "scale")
        checker = NameChecker(catalogue, f"papers/{name}/experiments.yaml")
        for part in ("demo", "experiments"):
            for number, experiment in enumerate(getattr(paper.experiments, part)):
                yield from checker.check_experiment(experiment, part, number)
        for scale in paper.experiments.seeds:
            yield from checker.check_name(scale, catalogue.scales, "seeds", scale)


def _check_display_names(checker: NameChecker, paper: Paper) -> Iterator[str]:
    for name, display in paper.displays.items():
        keys = ("displays", name)
        for analysis in display.list_analyses():
            yield from checker.check_name(analysis, paper.analyses, *keys)
        if isinstance(display, TableDisplay):
            for cell in display.cells:
                yield from checker.check_cell(cell, *keys)
        if isinstance(display, FigureDisplay):
            for runs in display.runs:
                yield from checker.check_runs(runs, *keys)
    for name, analysis in paper.analyses.items():
        keys = ("analyses", name)
        for runs in analysis.runs:
            yield from checker.check_runs(runs, *keys)
        if analysis.published is not None:
            papers = checker.catalogue.papers
            yield from checker.check_name(analysis.published, papers, *keys, "published")
