"""Check that the files of catalogue/ and papers/ agree with each other. Each function yields one line per problem."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from workflow_scripts.common.validation import describe_unknown, locate, suggest_name
from workflow_scripts.config.analysis_plan import AnalysisPlan
from workflow_scripts.config.catalogue import START, Catalogue, Paper
from workflow_scripts.config.display_schema import (
    AnalysedRuns,
    Claim,
    FigureDisplay,
    Runs,
    TableCell,
    TableDisplay,
)
from workflow_scripts.config.schema import PLANNED, Condition, Experiment, list_names
from workflow_scripts.evaluation.published import read_published
from workflow_scripts.tasks.packages import list_packages

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def check_published(folder: Path, paper: Paper) -> Iterator[str]:
    """Yield displays without a metric, published numbers of unknown cells, and claims about cells without a number."""
    yield from _check_metrics(folder / "displays.yaml", paper)
    published = read_published(folder / "published.csv")
    printed = {"/".join(key) for key in published}
    empty = {
        key
        for key, cell in paper.cells.items()
        if cell.analysis is None and not cell.list_variants() and key not in printed
    }
    for claim in paper.claims:
        for cell in empty.intersection(claim.list_cells()):
            where = f"{locate(folder / 'claims.yaml', ('claims',))}: claim '{claim.claim}'"
            yield f"{where}: {cell} has neither a run nor a number in published.csv; name another cell"
    for key, number in published.items():
        display = paper.displays.get(key[0])
        cell = "/".join(key)
        if display is None:
            yield f"{number.where}: no display '{key[0]}' in displays.yaml; {suggest_name(key[0], paper.displays)}"
        elif isinstance(display, TableDisplay) and cell not in paper.cells:
            yield f"{number.where}: no cell '{cell}' in displays.yaml; {suggest_name(cell, paper.cells)}"


def _check_metrics(file: Path, paper: Paper) -> Iterator[str]:
    """Yield tables with a cell without a metric or a unit, the first such cell of each."""
    for name, display in paper.displays.items():
        if not isinstance(display, TableDisplay):
            continue
        for key in ("metric", "unit"):
            lacking = [cell for cell in display.cells if getattr(cell, key) is None]
            if lacking:
                where = f"{locate(file, ('displays', name))}: displays.{name}"
                place = f"row '{lacking[0].row}' and column '{lacking[0].column}'"
                yield f"{where}: {place} name no {key}; one of them must"


def check_claims(paper: Paper, lines: list[str]) -> Iterator[str]:
    """Yield what is wrong with the cells that claims and their plan compare; `lines`: file and line of each claim.

    A misspelt name would otherwise be found after all trainings, or never.
    """
    names = set()
    for claim, line in zip(paper.claims, lines, strict=True):
        if claim.claim in names:
            yield f"{line}: claim '{claim.claim}' is listed twice; give one of them another name"
        names.add(claim.claim)
        for side, cell in claim.list_side_cells():
            where = f"{line}: key '{claim.claim}.{side}'"
            display = cell.split("/")[0]
            if display not in paper.displays:
                yield f"{where} names '{display}'; {suggest_name(display, paper.displays)}"
            elif not paper.match_cells(cell):
                yield f"{where}: no cell '{cell}' in displays.yaml; {suggest_name(cell, paper.cells)}"
        printed = paper.cells.get(claim.published or "")
        if printed is not None and printed.unit is not None and printed.unit != claim.unit:
            units = f"{claim.unit}, its printed effect in {printed.unit}"
            yield f"{line}: claim '{claim.claim}' is in {units}; name another cell"
        if claim.left == claim.right:
            yield f"{line}: claim '{claim.claim}' compares {claim.left} with itself; name two cells"
        if claim.relation != "falls_with":
            yield from _check_likeness(paper, claim, line)


def _check_likeness(paper: Paper, claim: Claim, line: str) -> Iterator[str]:
    """Yield whether the cells of a claim differ in their unit or their metric.

    An analysis may have several metrics of one kind, and the floor of a score is often that of another.
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
    for what, cells in (("units", units), ("metrics", metrics)):
        if len(cells) > 1:
            compared = " and ".join(f"{cell} in {name}" for name, cell in cells.items())
            yield f"{line}: claim '{claim.claim}' compares unlike {what}, {compared}; name cells of one"


def check_plans(folder: Path, paper: Paper) -> Iterator[str]:
    """Yield claims of analysis plans that do not exist, that two plans name, or that do not fit their threshold."""
    plan_of: dict[str, str] = {}
    for name, plan in paper.plans.items():
        yield from _check_plan(folder / name, plan, paper.claims_by_name)
        for claim in (*(entry.claim for entry in plan.primary), *plan.secondary):
            if claim in plan_of:
                yield f"{folder / name}: claim '{claim}' is also in {plan_of[claim]}; a claim is judged by one plan"
            plan_of[claim] = name


def _check_plan(file: Path, plan: AnalysisPlan, claims: dict[str, Claim]) -> Iterator[str]:
    for number, entry in enumerate(plan.primary):
        keys = ("primary", number)
        if entry.claim not in claims:
            yield describe_unknown(file, (*keys, "claim"), entry.claim, claims)
        if entry.control.same_sign and entry.control.same_sign not in claims:
            yield describe_unknown(file, (*keys, "control", "same_sign"), entry.control.same_sign, claims)
        if entry.claim in claims:
            counts_seeds = claims[entry.claim].measure == "success_rate"
            if counts_seeds != entry.counts_successes:
                line = locate(file, keys)
                yield f"{line}: claim '{entry.claim}': threshold goes with measure success_rate, and only with it"
    for number, name in enumerate(plan.secondary):
        if name not in claims:
            yield describe_unknown(file, ("secondary", number), name, claims)


def check_planned_seeds(file: Path, paper: Paper) -> Iterator[str]:
    """Yield experiments of `file` whose seeds are `planned`, where no plan says which these are."""
    for scale in paper.experiments.list_planned_scales():
        plans = paper.list_plans(scale)
        planned_seeds = paper.list_planned_seeds(scale)
        for keys, experiment in paper.experiments.map_at(scale).items():
            if experiment.seeds[scale] != PLANNED:
                continue
            line = locate(file, keys)
            if not plans:
                yield f"{line}: its seeds at {scale} are `planned`, and no analysis plan is of that scale; name them"
            if len(plans) > 1:
                for variant in experiment.list_variants():
                    if variant not in planned_seeds:
                        unnamed = f"and {'/'.join(variant)} is in no claim of {' and '.join(plans)}"
                        yield f"{line}: its seeds at {scale} are `planned`, {unnamed}; name them"


def check_controls(folder: Path, paper: Paper) -> Iterator[str]:
    """Yield cells of analysis plans that do not exist."""
    for name, plan in paper.plans.items():
        for number, entry in enumerate(plan.primary):
            for cell in entry.control.cells:
                if cell not in paper.cells:
                    line = locate(folder / name, ("primary", number, "control"))
                    where = f"{line}: control of claim '{entry.claim}'"
                    yield f"{where}: no cell '{cell}' in displays.yaml; {suggest_name(cell, paper.cells)}"


def check_characters(catalogue: Catalogue) -> Iterator[str]:
    """Yield names that could leave results/ as a path, or be more than a word for a shell."""
    variants = [name for method in catalogue.methods.values() for name in method.variants]
    names_by_file = {
        "catalogue/scales.yaml": [*catalogue.scales],
        "catalogue/tasks": [*catalogue.tasks],
        "catalogue/methods": [*catalogue.methods, *variants],
        "papers": [*catalogue.papers],
    }
    for name, paper in catalogue.papers.items():
        names_by_file[f"papers/{name}/displays.yaml"] = [*paper.displays, *paper.analyses]
    rule = "needs at most 100 letters a-z, A-Z, digits, '.', '_' and '-', and start with a letter or digit"
    for file, names in names_by_file.items():
        for name in names:
            if not NAME.fullmatch(name):
                yield f"{catalogue.root / file}: the name {name[:100]!r} {rule}"


def check_conditions(catalogue: Catalogue) -> Iterator[str]:
    """Yield names in the condition of a rule that match nothing."""
    known = {"task": catalogue.tasks, "kind": list_packages("tasks"), "scale": catalogue.scales}
    for entry in (*catalogue.tasks.values(), *catalogue.methods.values()):
        for block in entry.blocks:
            if not isinstance(block.content, Condition):
                continue
            for key, names in known.items():
                for pattern in list_names(getattr(block.content, key) or []):
                    if not any(fnmatchcase(name, pattern) for name in names):
                        yield f"{block.place / key}: no {key} '{pattern}'; {suggest_name(pattern, names)}"


@dataclass(frozen=True)
class NameChecker:
    """Yields a problem for each name in a file of papers/ or catalogue/ that is not defined."""

    catalogue: Catalogue
    file: str

    def check_name(self, name: str, known: Collection[str], *keys: str | int) -> Iterator[str]:
        """Yield a name at `keys` of the file that is none of the known ones."""
        if name not in known:
            yield describe_unknown(self.catalogue.root / self.file, keys, name, known)

    def check_task(self, task: str | None, *keys: str | int) -> Iterator[str]:
        """Yield a task that is not in the catalogue."""
        if task is not None:
            yield from self.check_name(task, self.catalogue.tasks, *keys, "task")

    def check_weights(self, weights: str | None, *keys: str | int) -> Iterator[str]:
        """Yield given weights that are neither a task nor `start`."""
        if weights:
            yield from self.check_name(weights, (START, *self.catalogue.tasks), *keys, "weights")

    def check_variants(
        self, method: str | None, variants: Collection[str], weights: str | None, *keys: str | int
    ) -> Iterator[str]:
        """Yield a method that is not in the catalogue, variants that it does not have, and their given weights."""
        if method is None:
            return
        methods = self.catalogue.methods
        yield from self.check_name(method, methods, *keys, "method")
        for variant in variants:
            name, _, own_weights = variant.partition("@")
            if method in methods:
                yield from self.check_name(name, methods[method].variants, *keys, "variant")
            yield from self.check_weights(own_weights or weights, *keys)

    def check_cell(self, cell: TableCell, *keys: str | int) -> Iterator[str]:
        """Yield names of a cell. Scores of an analysis may have names that the catalogue does not have."""
        if cell.analysis is not None:
            return
        yield from self.check_task(cell.task, *keys)
        variants = cell.variant or []
        if isinstance(variants, str):
            variants = [variants]
        elif isinstance(variants, dict):
            variants = list(variants.values())
        yield from self.check_variants(cell.method, variants, cell.weights, *keys)

    def check_runs(self, runs: Runs | AnalysedRuns, *keys: str | int) -> Iterator[str]:
        """Yield names of an entry of `runs`."""
        for task in list_names(runs.task):
            yield from self.check_task(task, *keys)
        yield from self.check_variants(runs.method, [runs.variant], None, *keys)

    def check_experiment(self, experiment: Experiment, *keys: str | int) -> Iterator[str]:
        """Yield names of an entry of experiments.yaml."""
        methods = self.catalogue.methods
        for task in list_names(experiment.task):
            yield from self.check_task(task, *keys)
        yield from self.check_weights(experiment.weights, *keys)
        for method, variants in experiment.methods.items():
            yield from self.check_name(method, methods, *keys, "methods", method)
            if method in methods:
                for variant in variants:
                    yield from self.check_name(variant, methods[method].variants, *keys, "methods", method)
        for scale in (*experiment.seeds, *list_names(experiment.at or [])):
            yield from self.check_name(scale, self.catalogue.scales, *keys)


def check_names(catalogue: Catalogue) -> Iterator[str]:
    """Yield names of tasks, methods, variants, scales, analyses and papers that are not defined."""
    checker = NameChecker(catalogue, "catalogue/scales.yaml")
    for name, scale in catalogue.scales.items():
        for method in scale.jobs.memory_of:
            yield from checker.check_name(method, catalogue.methods, name, "jobs", "memory_of", method)
    for name, paper in catalogue.papers.items():
        yield from _check_display_names(NameChecker(catalogue, f"papers/{name}/displays.yaml"), paper)
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
            yield from checker.check_name(analysis.published, checker.catalogue.papers, *keys, "published")
