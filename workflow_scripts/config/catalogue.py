"""The content of catalogue/ and papers/, and the names of runs. A run belongs to no paper; several may request it."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, TypeVar

from workflow_scripts.common.errors import Problems, UserError
from workflow_scripts.common.validation import suggest_name
from workflow_scripts.config.analysis_plan import AnalysisPlan, PlannedClaim, PrimaryClaim
from workflow_scripts.config.display_schema import (
    Analysis,
    Claim,
    Display,
    TableCell,
    TableDisplay,
    VariantKey,
    match_stars,
)
from workflow_scripts.config.entries import Method, Task
from workflow_scripts.config.schema import PLANNED, Experiment, Experiments, Scale

START = "start"  # in the place of a task whose weights are scored: those that a training begins with
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Run:
    """One training, the same for every paper that requests it.

    The variant `<variant>@<task>` is no training: it scores the weights that the variant has after its training on that
    task, `<variant>@start` those that it would begin with.
    """

    task: str
    method: str
    variant: str
    seed: int

    def __str__(self) -> str:
        return f"{self.task}/{self.method}/{self.variant}/seed-{self.seed}"

    @property
    def unseeded(self) -> VariantKey:
        """The name without the seed."""
        return self.task, self.method, self.variant

    @property
    def weights(self) -> str | None:
        """Whose weights are scored, a task or START; None for a training."""
        return self.variant.partition("@")[2] or None

    @property
    def training(self) -> "Run":
        """The training of the variant on this task."""
        return replace(self, variant=self.variant.partition("@")[0])


@dataclass(frozen=True)
class Paper:
    """The content of a folder of papers/. `plans`: file in the folder -> analysis plan."""

    experiments: Experiments
    displays: dict[str, Display] = field(default_factory=dict)
    analyses: dict[str, Analysis] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)
    plans: dict[str, AnalysisPlan] = field(default_factory=dict)

    # Displays

    @cached_property
    def cells(self) -> dict[str, TableCell]:
        """The cells of all tables by `<display>/<row>/<column>/<metric>`."""
        cells: dict[str, TableCell] = {}
        for name, display in self.displays.items():
            if isinstance(display, TableDisplay):
                cells |= {cell.make_key(name): cell for cell in display.cells}
        return cells

    def match_cells(self, pattern: str) -> list[TableCell]:
        """Return the cells that a side of a claim names."""
        if pattern in self.cells:
            return [self.cells[pattern]]
        if "*" not in pattern:
            return []
        return [cell for key, cell in self.cells.items() if match_stars(pattern, key) is not None]

    @cached_property
    def intervened_variants(self) -> frozenset[VariantKey]:
        """The variants whose scores under an intervention a display or an analysis reads."""
        entries = (*self.displays.values(), *self.analyses.values())
        return frozenset().union(*(entry.intervened_variants for entry in entries))

    def select_shown_displays(self, runs: Iterable[Run]) -> dict[str, Display]:
        """Select the displays that have something to show: one of `runs`, an analysis of one, or one of no run."""
        variants = {run.unseeded for run in runs}
        return {name: display for name, display in self.displays.items() if self._has_results(display, variants)}

    def _has_results(self, display: Display, variants: set[VariantKey]) -> bool:
        if display.variants & variants:
            return True
        for name in display.list_analyses():
            analysis = self.analyses[name]
            if not analysis.runs or analysis.variants & variants:
                return True
        return False

    def select_claimed_displays(self, runs: Iterable[Run] | None = None) -> dict[str, Display]:
        """Select the displays whose cells the claims compare; with `runs` those that have something to show."""
        displays = self.displays if runs is None else self.select_shown_displays(runs)
        names = dict.fromkeys(cell.split("/")[0] for claim in self.claims for cell in claim.list_cells())
        return {name: displays[name] for name in names if name in displays}

    # Claims and plans

    @cached_property
    def claims_by_name(self) -> dict[str, Claim]:
        """The claims by name."""
        return {claim.claim: claim for claim in self.claims}

    def list_primary_claims(self, scale: str | None = None) -> list[PlannedClaim]:
        """Return the primary claims of all plans, or of those of a scale."""
        return [
            PlannedClaim(file, plan, entry)
            for file, plan in self.plans.items()
            if scale in (None, plan.scale)
            for entry in plan.primary
        ]

    def list_primary_variants(self, entry: PrimaryClaim) -> list[VariantKey]:
        """Return the variants that decide a primary claim: those of its sides and of its controls."""
        cells = [*self.claims_by_name[entry.claim].list_cells(), *entry.control.cells]
        if entry.control.same_sign:
            cells += self.claims_by_name[entry.control.same_sign].list_cells()
        return self._list_cell_variants(cells)

    def _list_cell_variants(self, patterns: Iterable[str]) -> list[VariantKey]:
        """Return the variants whose scores the cells show that match these sides of claims."""
        variants: dict[VariantKey, None] = {}
        for pattern in patterns:
            for cell in self.match_cells(pattern):
                variants |= dict.fromkeys(cell.list_variants())
        return list(variants)

    def list_planned_seeds(self, scale: str) -> dict[VariantKey, list[int]]:
        """Return the planned seeds of each variant that a claim of a plan of the scale compares."""
        seeds: dict[VariantKey, list[int]] = {}
        for plan in self.list_plans(scale).values():
            for name in plan.secondary:
                variants = self._list_cell_variants(self.claims_by_name[name].list_cells())
                seeds |= dict.fromkeys(variants, plan.seeds)
        for planned in self.list_primary_claims(scale):
            seeds |= dict.fromkeys(self.list_primary_variants(planned.entry), planned.seeds)
        return seeds

    def list_plans(self, scale: str) -> dict[str, AnalysisPlan]:
        """Return file -> analysis plan of those of a scale."""
        return {file: plan for file, plan in self.plans.items() if plan.scale == scale}

    def find_seeds(self, experiment: Experiment, variant: VariantKey, scale: str) -> list[int]:
        """Return the seeds that an experiment asks for, of one of its variants at a scale.

        `planned` are those of the claims that compare the variant; if there is none, those of the only plan.
        """
        seeds = experiment.seeds[scale]
        if seeds != PLANNED:
            return seeds
        planned_seeds = self.list_planned_seeds(scale)
        if variant in planned_seeds:
            return planned_seeds[variant]
        (plan,) = self.list_plans(scale).values()
        return plan.seeds

    def list_planned_runs(self, planned: PlannedClaim) -> list[Run]:
        """Return the runs that decide a primary claim: each of its variants with each planned seed."""
        variants = self.list_primary_variants(planned.entry)
        return [Run(*variant, seed) for variant in variants for seed in planned.seeds]


@dataclass(frozen=True)
class Catalogue:
    """The content of catalogue/ and papers/."""

    root: Path
    tasks: dict[str, Task]
    methods: dict[str, Method]
    scales: dict[str, Scale]
    papers: dict[str, Paper] = field(default_factory=dict)
    problems: Problems = field(default_factory=Problems)  # what is left out because it is wrong
    stored: dict[Hashable, Any] = field(default_factory=dict)  # by `store_with_catalogue`


def store_with_catalogue(function: Function) -> Function:
    """Call a function of a catalogue and of hashable positional arguments only once for the same arguments."""

    @wraps(function)
    def find_or_call(catalogue: Catalogue, *arguments: Hashable) -> Any:
        key = (function, arguments)
        if key not in catalogue.stored:
            catalogue.stored[key] = function(catalogue, *arguments)
        return catalogue.stored[key]

    return find_or_call  # type: ignore[return-value]


def find_scale(catalogue: Catalogue, name: str) -> Scale:
    """Return the scale called `name`. Raises UserError with the nearest known name."""
    if name not in catalogue.scales:
        raise UserError(f"no scale '{name}' in catalogue/scales.yaml; {suggest_name(name, catalogue.scales)}")
    return catalogue.scales[name]


def parse_run(catalogue: Catalogue, run_id: str) -> Run:
    """Parse `<task>/<method>/<variant>[@<weights>]/seed-<n>`. Raises UserError with the nearest known name."""
    parts = run_id.strip("/").split("/")
    if len(parts) != 4 or not parts[3].removeprefix("seed-").isdecimal() or not parts[3].startswith("seed-"):
        raise UserError(f"run '{run_id}' is not of the form <task>/<method>/<variant>/seed-<n>")
    task, method, variant, seed = parts
    for name, among, what in ((task, catalogue.tasks, "task"), (method, catalogue.methods, "method")):
        if name not in among:
            raise UserError(f"run '{run_id}': no {what} '{name}' in catalogue/; {suggest_name(name, among)}")
    trained, at, weights = variant.partition("@")
    if trained not in catalogue.methods[method].variants:
        known = catalogue.methods[method].variants
        raise UserError(f"run '{run_id}': {method} has no variant '{trained}'; {suggest_name(trained, known)}")
    if at and weights not in (known := (START, *catalogue.tasks)):
        raise UserError(f"run '{run_id}': no weights '{weights}'; {suggest_name(weights, known)}")
    return Run(task, method, variant, int(seed.removeprefix("seed-")))
