"""What the verdicts on single claims of a paper need: cells, runs and analyses."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.run_names import Run, VariantKey
from workflow_scripts.common.validation import suggest_name
from workflow_scripts.config.analysis_plan import PlannedClaim
from workflow_scripts.config.catalogue import Catalogue, Paper, store_with_catalogue
from workflow_scripts.config.display_schema import Analysis, Claim, TableCell, TableDisplay


@dataclass(frozen=True)
class ClaimNeeds:
    """What the verdicts on some claims of a paper need.

    claims: these claims, those that they suppose by `given`, and those that must have the same
    sign, in the order of the file. planned: the primary ones among them. displays: the tables that
    they compare, with the rows and columns of the compared cells alone.
    """

    paper: Paper
    claims: list[Claim]
    planned: list[PlannedClaim]
    displays: dict[str, TableDisplay]

    @property
    def analyses(self) -> dict[str, Analysis]:
        """The analyses that the cells show."""
        names: dict[str, None] = {}
        for display in self.displays.values():
            names |= dict.fromkeys(display.list_analyses())
        return {name: self.paper.analyses[name] for name in names}

    @property
    def scored_variants(self) -> frozenset[VariantKey]:
        """The variants whose scores the cells show or the analyses read."""
        variants: set[VariantKey] = set()
        for display in self.displays.values():
            variants |= display.variants
        for analysis in self.analyses.values():
            if analysis.scored:
                variants |= analysis.variants
        return frozenset(variants)

    @property
    def compared_variants(self) -> frozenset[VariantKey]:
        """The variants that the cells are about."""
        variants: set[VariantKey] = set()
        for display in self.displays.values():
            for cell in display.cells:
                variants.update(cell.list_variants())
        return frozenset(variants)

    @cached_property
    def variants(self) -> frozenset[VariantKey]:
        """The variants that the cells are about, and those that the analyses read."""
        variants = set(self.compared_variants)
        for analysis in self.analyses.values():
            variants |= analysis.variants
        return frozenset(variants)

    def select_shown_displays(self, runs: Iterable[Run]) -> dict[str, TableDisplay]:
        """Select the tables that have something to show where `runs` are requested."""
        variants = {run.variant_key for run in runs}
        displays: dict[str, TableDisplay] = {}
        for name, display in self.displays.items():
            if self.paper.has_results(display, variants):
                displays[name] = display
        return displays

    @property
    def intervened_variants(self) -> frozenset[VariantKey]:
        """Those whose scores under an intervention the cells show or the analyses read."""
        variants = set(self.shown_interventions)
        for analysis in self.analyses.values():
            variants |= analysis.intervened_variants
        return frozenset(variants)

    @property
    def shown_interventions(self) -> frozenset[VariantKey]:
        """The variants whose scores under an intervention the cells show."""
        variants: set[VariantKey] = set()
        for display in self.displays.values():
            variants |= display.intervened_variants
        return frozenset(variants)


@store_with_catalogue
def find_claim_needs(
    catalogue: Catalogue, key: str, names: tuple[str, ...], scale: str
) -> ClaimNeeds:
    """Return what the verdicts on the claims `names` of a paper need at a scale."""
    paper = catalogue.papers[key]
    planned_claims = {planned.name: planned for planned in paper.list_primary_claims(scale)}
    needed: dict[str, None] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in needed:
            continue
        needed[name] = None
        others = [paper.claims_by_name[name].given]
        if name in planned_claims:
            others.append(planned_claims[name].entry.control.same_sign)
        waiting += [other for other in others if other is not None]
    claims = [claim for claim in paper.claims if claim.claim in needed]
    planned = [planned_claims[claim.claim] for claim in claims if claim.claim in planned_claims]
    patterns: list[str] = []
    for claim in claims:
        patterns += claim.list_cells()
    for planned_claim in planned:
        patterns += planned_claim.entry.control.cells
    return ClaimNeeds(paper, claims, planned, _reduce_tables(paper, patterns))


def _reduce_tables(paper: Paper, patterns: Iterable[str]) -> dict[str, TableDisplay]:
    """Return the tables of these cells with their rows and columns alone, in the paper's order."""
    cells_by_display: dict[str, list[TableCell]] = {}
    for pattern in patterns:
        cells_by_display.setdefault(pattern.split("/")[0], []).extend(paper.match_cells(pattern))
    tables: dict[str, TableDisplay] = {}
    for name, display in paper.displays.items():
        if name not in cells_by_display or not isinstance(display, TableDisplay):
            continue
        rows = {cell.row for cell in cells_by_display[name]}
        columns = {cell.column for cell in cells_by_display[name]}
        # Not `model_copy`, which would copy the cells of the whole table, too.
        values = {key: getattr(display, key) for key in display.model_fields_set}
        values["rows"] = [row for row in display.rows if row.row in rows]
        values["columns"] = [column for column in display.columns if column.column in columns]
        values["baseline"] = None
        tables[name] = TableDisplay.model_construct(**values)
    return tables


def split_claim_names(names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return paper -> claims of names `<paper>/<claim>`."""
    claims: dict[str, tuple[str, ...]] = {}
    for name in names:
        paper, _, claim = name.partition("/")
        claims[paper] = (*claims.get(paper, ()), claim)
    return claims


def check_claim_names(catalogue: Catalogue, names: Iterable[str], place: str = "") -> None:
    """Raise UserError, with the nearest name, if a paper has no such claim.

    place: where the names are written, if it is known.
    """
    for paper, claims in split_claim_names(names).items():
        known_claims = catalogue.papers[paper].claims_by_name
        for claim in claims:
            if claim not in known_claims:
                problem = f"papers/{paper}/claims.yaml has no claim '{claim}'"
                start = f"{place}: " if place else ""
                raise UserError(f"{start}{problem}; {suggest_name(claim, known_claims)}")


def is_measured(paper: Paper, claim: Claim, variants: Collection[VariantKey]) -> bool:
    """Whether a claim can have an effect where the runs of `variants` are requested."""
    return find_unmeasured_cell(paper, claim, variants) is None


def find_unmeasured_cell(
    paper: Paper, claim: Claim, variants: Collection[VariantKey]
) -> str | None:
    """Return the first cell, or pattern, of a claim that the runs of `variants` do not measure."""
    for pattern in claim.list_cells():
        cells = paper.match_cells(pattern)
        if not any(_is_cell_measured(paper, cell, variants) for cell in cells):
            return pattern
    return None


def _is_cell_measured(paper: Paper, cell: TableCell, variants: Collection[VariantKey]) -> bool:
    """Whether a cell has a score where the runs of `variants` are requested."""
    cell_variants = cell.list_variants()
    if any(variant not in variants for variant in cell_variants):
        return False
    if cell.analysis is None:
        return bool(cell_variants)
    analysis = paper.analyses[cell.analysis]
    return not analysis.runs or any(variant in variants for variant in analysis.variants)
