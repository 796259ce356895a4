"""The content of catalogue/ and papers/."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, TypeVar

from workflow_scripts.common.errors import ErrorList, UserError
from workflow_scripts.common.run_names import START, Run, VariantKey, split_weights
from workflow_scripts.common.validation import suggest_name
from workflow_scripts.config.analysis_plan import AnalysisPlan, PlannedClaim, PrimaryClaim
from workflow_scripts.config.display_schema import (
    Analysis,
    Claim,
    Display,
    TableCell,
    TableDisplay,
    match_stars,
)
from workflow_scripts.config.entries import Method, Task
from workflow_scripts.config.schema import Experiments, Scale

Function = TypeVar("Function", bound=Callable[..., Any])


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
            if not isinstance(display, TableDisplay):
                continue
            for cell in display.cells:
                cells[cell.make_key(name)] = cell
        return cells

    def match_cells(self, pattern: str) -> list[TableCell]:
        """Return the cells that a key, or a pattern with `*`, of a side of a claim matches."""
        if pattern in self.cells:
            return [self.cells[pattern]]
        if "*" not in pattern:
            return []
        cells = self.cells.items()
        return [cell for key, cell in cells if match_stars(pattern, key) is not None]

    @cached_property
    def intervened_variants(self) -> frozenset[VariantKey]:
        """The variants whose scores under an intervention a display or an analysis reads."""
        variants: set[VariantKey] = set()
        for entry in (*self.displays.values(), *self.analyses.values()):
            variants |= entry.intervened_variants
        return frozenset(variants)

    def select_shown_displays(self, runs: Iterable[Run]) -> dict[str, Display]:
        """Select the displays that have something to show.

        That is one of `runs`, an analysis of one, or an analysis of no run.
        """
        variants = {run.variant_key for run in runs}
        displays: dict[str, Display] = {}
        for name, display in self.displays.items():
            if self.has_results(display, variants):
                displays[name] = display
        return displays

    def has_results(self, display: Display, variants: set[VariantKey]) -> bool:
        """Whether a display has something to show where the runs of `variants` are requested."""
        if display.variants & variants:
            return True
        for name in display.list_analyses():
            analysis = self.analyses[name]
            if not analysis.runs or analysis.variants & variants:
                return True
        return False

    def select_claimed_displays(self, runs: Iterable[Run] | None = None) -> dict[str, Display]:
        """Select the displays whose cells the claims compare.

        With `runs` only those that have something to show.
        """
        displays = self.displays
        if runs is not None:
            displays = self.select_shown_displays(runs)
        names: dict[str, None] = {}
        for claim in self.claims:
            names |= dict.fromkeys(cell.split("/")[0] for cell in claim.list_cells())
        return {name: displays[name] for name in names if name in displays}

    # Claims and plans

    @cached_property
    def claims_by_name(self) -> dict[str, Claim]:
        """The claims by name."""
        return {claim.claim: claim for claim in self.claims}

    def list_plans(self, scale: str) -> dict[str, AnalysisPlan]:
        """Return file -> analysis plan of those of a scale."""
        return {file: plan for file, plan in self.plans.items() if plan.scale == scale}

    def list_planned_scales(self, claim: str | None = None) -> list[str]:
        """Return the scales with a plan, or with a plan in which this claim is primary."""
        scales: dict[str, None] = {}
        for planned in self.list_primary_claims():
            if claim in (None, planned.name):
                scales[planned.plan.scale] = None
        return list(scales)

    def list_primary_claims(self, scale: str | None = None) -> list[PlannedClaim]:
        """Return the primary claims of all plans, or of those of a scale."""
        plans = self.plans if scale is None else self.list_plans(scale)
        claims: list[PlannedClaim] = []
        for file, plan in plans.items():
            claims += [PlannedClaim(file, plan, entry) for entry in plan.primary]
        return claims

    def list_deciding_variants(self, entry: PrimaryClaim) -> list[VariantKey]:
        """Return the variants that decide a primary claim, of its sides and of its controls."""
        cells = [*self.claims_by_name[entry.claim].list_cells(), *entry.control.cells]
        if entry.control.same_sign:
            cells += self.claims_by_name[entry.control.same_sign].list_cells()
        return self._list_cell_variants(cells)

    def _list_cell_variants(self, patterns: Iterable[str]) -> list[VariantKey]:
        """Return the variants whose scores the cells show that these sides of claims name."""
        variants: dict[VariantKey, None] = {}
        for pattern in patterns:
            for cell in self.match_cells(pattern):
                variants |= dict.fromkeys(cell.list_variants())
        return list(variants)

    def list_planned_seeds(self, scale: str) -> dict[VariantKey, list[int]]:
        """Return the planned seeds of each variant that decides a claim of a plan of the scale.

        Those of a primary claim count before those of secondary ones, and a later plan's before an
        earlier one's.
        """
        seeds: dict[VariantKey, list[int]] = {}
        for plan in self.list_plans(scale).values():
            for name in plan.secondary:
                variants = self._list_cell_variants(self.claims_by_name[name].list_cells())
                seeds |= dict.fromkeys(variants, plan.seeds)
        for planned in self.list_primary_claims(scale):
            seeds |= dict.fromkeys(self.list_deciding_variants(planned.entry), planned.seeds)
        return seeds

    def find_planned_seeds(self, variant: VariantKey, scale: str) -> list[int]:
        """Return the seeds of the claims that compare a variant; if none does, of the first plan.

        Raises UserError without a plan of the scale.
        """
        planned_seeds = self.list_planned_seeds(scale)
        if variant in planned_seeds:
            return planned_seeds[variant]
        plans = list(self.list_plans(scale).values())
        if not plans:
            raise UserError(f"{variant}: no plan at scale {scale} has its seeds; give them numbers")
        return plans[0].seeds

    def list_planned_runs(self, planned: PlannedClaim) -> list[Run]:
        """Return the runs that decide a primary claim: its variants with each planned seed."""
        runs: list[Run] = []
        for variant in self.list_deciding_variants(planned.entry):
            runs += [variant.make_run(seed) for seed in planned.seeds]
        return runs


@dataclass(frozen=True)
class Catalogue:
    """The content of catalogue/ and papers/."""

    root: Path
    tasks: dict[str, Task]
    methods: dict[str, Method]
    scales: dict[str, Scale]
    papers: dict[str, Paper] = field(default_factory=dict)
    meanings: dict[str, str] = field(default_factory=dict)  # what a metric measures, in words
    problems: ErrorList = field(default_factory=ErrorList)  # what is left out because it is wrong
    stored: dict[Hashable, Any] = field(default_factory=dict)  # by `store_with_catalogue`


def store_with_catalogue(function: Function) -> Function:
    """Return a function that calls `function` only once for a catalogue and the same arguments.

    The arguments after the catalogue are positional and hashable.
    """

    @wraps(function)
    def find_or_call(catalogue: Catalogue, *arguments: Hashable) -> Any:
        key = (function, arguments)
        if key not in catalogue.stored:
            catalogue.stored[key] = function(catalogue, *arguments)
        return catalogue.stored[key]

    return find_or_call  # type: ignore[return-value]


def find_scale(catalogue: Catalogue, name: str) -> Scale:
    """Return the scale called `name`. Raises UserError with the nearest name of a scale."""
    scales = catalogue.scales
    if name not in scales:
        raise UserError(f"no scale '{name}' in catalogue/scales.yaml; {suggest_name(name, scales)}")
    return scales[name]


def parse_run(catalogue: Catalogue, run_id: str) -> Run:
    """Parse `<task>/<method>/<variant>[@<weights>]/seed-<n>`.

    Raises UserError with the nearest name of the catalogue.
    """
    run = Run.parse(run_id)
    check_run(catalogue, run)
    return run


def check_run(catalogue: Catalogue, run: Run) -> None:
    """Raise UserError if the catalogue has no such run, with the nearest name or the known ones."""
    tasks, methods = catalogue.tasks, catalogue.methods
    if run.task not in tasks:
        problem = f"no task '{run.task}' in catalogue/; {suggest_name(run.task, tasks)}"
        raise UserError(f"run '{run}': {problem}")
    if run.method not in methods:
        problem = f"no method '{run.method}' in catalogue/; {suggest_name(run.method, methods)}"
        raise UserError(f"run '{run}': {problem}")
    trained_variant, weights = split_weights(run.variant)
    variants = methods[run.method].variants
    if trained_variant not in variants:
        suggestion = suggest_name(trained_variant, variants)
        problem = f"{run.method} has no variant '{trained_variant}'; {suggestion}"
        raise UserError(f"run '{run}': {problem}")
    sources_of_weights = (START, *tasks)
    if weights is not None and weights not in sources_of_weights:
        problem = f"no weights '{weights}'; {suggest_name(weights, sources_of_weights)}"
        raise UserError(f"run '{run}': {problem}")
