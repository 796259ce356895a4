"""What the site shows of a claim: its row of claims.csv, both sides by seed, trainings and curves.

Everything is read from exported files. Nothing is judged again.
"""

import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_csv, read_json
from workflow_scripts.common.result_folders import ExportFolder, ReportFolder
from workflow_scripts.common.run_names import START, Run, VariantKey
from workflow_scripts.config.analysis_plan import PlannedClaim
from workflow_scripts.config.catalogue import Catalogue, Paper
from workflow_scripts.config.display_schema import TableCell, TableDisplay
from workflow_scripts.evaluation.seeds import list_common_seeds
from workflow_scripts.reporting.claims.claim_rows import (
    STATES,
    ClaimRow,
    SideRow,
    read_claim_rows,
    read_side_rows,
)

# The key of a cell is display/row/column/metric.
KEY_PARTS = 4
ROW_PART = 1
COLUMN_PART = 2
# Name of a value -> run -> (step, value).
Curves = dict[str, dict[Run, list[tuple[int, float]]]]


@dataclass(frozen=True)
class ComparedCell:
    """One cell of a side.

    values: by seed; that of a number without seeds has the seed None. intervention, item_set: those
    of the scores, empty without. is_gain: whether the values are gains over another variant. unit:
    of the values, such as `percent`; empty for the key of no cell.
    """

    side: str
    key: str
    label: str
    published: float | None = None
    values: dict[int | None, float] = field(default_factory=dict)
    intervention: str = ""
    item_set: str = ""
    is_gain: bool = False
    unit: str = ""

    @property
    def metric(self) -> str:
        """The metric of the key."""
        return self.key.rsplit("/", 1)[-1]

    @property
    def mean(self) -> float | None:
        """Mean over the seeds; None without a value."""
        if not self.values:
            return None
        return sum(self.values.values()) / len(self.values)

    @property
    def seeds(self) -> set[int]:
        """The seeds that have a value."""
        return {seed for seed in self.values if seed is not None}


@dataclass(frozen=True)
class MeasuredClaim:
    """A claim with what it was measured by.

    trainings: their entries in provenance.json. planned: what the plan says about a primary claim.
    """

    row: ClaimRow
    cells: list[ComparedCell]
    trainings: list[dict[str, Any]]
    curves: Curves
    planned: PlannedClaim | None

    @property
    def slug(self) -> str:
        """Name of the claim's page."""
        return make_slug(f"{self.row.paper}-{self.row.claim}")

    @property
    def verdict_class(self) -> str:
        """The verdict, or `planned`, as a class of the style sheet."""
        return make_slug(self.row.state)

    @property
    def seed_count(self) -> str:
        """Number of seeds per side: `5`, or `1 of 9` of a primary claim; empty if it is not run."""
        if self.row.n_planned is not None:
            return f"{self.row.n_seeds or 0} of {self.row.n_planned}"
        if self.row.n_seeds is None:
            return ""
        return str(self.row.n_seeds)

    @property
    def planned_seed_count(self) -> str:
        """How many seeds of the plan are run: `1 of 9 planned seeds`; of a primary claim only."""
        return f"{self.seed_count} planned seeds"

    @property
    def shared_seeds(self) -> list[int]:
        """The seeds that all cells have; none of a primary claim, whose plan names them."""
        if self.row.is_primary:
            return []
        return list_common_seeds(cell.seeds for cell in self.cells if cell.seeds)

    @property
    def table(self) -> str:
        """Name of the first table that the claim is about."""
        return self.row.left.split("/")[0]

    @property
    def reason(self) -> str:
        """Why it has this verdict, as a sentence."""
        if not self.row.is_planned:
            return _make_sentence(self.row.reason)
        text = f"{self.planned_seed_count} are run. No effect is shown before the last one is."
        return f"{text} {_make_sentence(self.row.cause)}".rstrip()


def _make_sentence(text: str) -> str:
    """Begin with a capital letter and end with a full stop; empty for no text."""
    if not text:
        return ""
    return f"{text[0].upper()}{text[1:]}."


def make_slug(text: str) -> str:
    """Return the text as an id or a file name."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


@dataclass(frozen=True)
class ExportedResults:
    """What claims need of a folder that `export` wrote.

    sides: by paper and claim. runs: entries of provenance.json, by name. curves: lines of
    curves.csv, by run. Results that are not exported have neither.
    """

    rows: list[ClaimRow]
    sides: dict[tuple[str, str], list[SideRow]]
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    curves: dict[Run, list[dict[str, str]]] = field(default_factory=dict)


def read_measured_claims(catalogue: Catalogue, results: Path) -> list[MeasuredClaim]:
    """Read all claims of a folder that `export` wrote, in the order of `rank_claim`.

    Raises UserError for a missing file, and for a paper that papers/ does not have.
    """
    return make_claims(catalogue, read_exported_results(catalogue, results))


def make_claims(catalogue: Catalogue, exported: ExportedResults) -> list[MeasuredClaim]:
    """Make all claims from what was read, by paper and in the order of `rank_claim`."""
    claims = [_make_claim(row, catalogue.papers[row.paper], exported) for row in exported.rows]
    papers = list(catalogue.papers)
    return sorted(claims, key=lambda claim: (papers.index(claim.row.paper), *rank_claim(claim)))


def rank_claim(claim: MeasuredClaim) -> tuple[bool, int]:
    """Return the key that sorts the claims of a paper: primary ones first, then by verdict."""
    return not claim.row.is_primary, STATES.index(claim.row.state)


def read_exported_results(catalogue: Catalogue, results: Path) -> ExportedResults:
    """Read the files. Raises UserError for a missing one, and for a paper that papers/ lacks."""
    folder = ExportFolder(results)
    judged = read_judged_claims(catalogue, folder)
    runs = {entry["run"]: entry for entry in read_json(folder.provenance)}
    curves = defaultdict(list)
    for line in read_csv(folder.curves):
        run = Run(line["task"], line["method"], line["variant"], int(line["seed"]))
        curves[run].append(line)
    return replace(judged, runs=runs, curves=curves)


def read_judged_claims(catalogue: Catalogue, folder: ReportFolder) -> ExportedResults:
    """Read the claims with both sides, without trainings and curves.

    Raises UserError for a missing file, and for a paper that papers/ lacks.
    """
    rows = read_claim_rows(folder.claims.table)
    unknown = {row.paper for row in rows} - catalogue.papers.keys()
    if unknown:
        missing = f"papers/{min(unknown)}"
        raise UserError(f"{folder.claims.table}: no folder {missing}; export the results again")
    sides = defaultdict(list)
    for side_row in read_side_rows(folder.claims.sides):
        sides[side_row.paper, side_row.claim].append(side_row)
    return ExportedResults(rows, sides)


def _make_claim(row: ClaimRow, paper: Paper, exported: ExportedResults) -> MeasuredClaim:
    """Make a claim from its row, and from what the exported results have of its cells and runs."""
    planned = None
    if row.is_primary:
        planned = _find_planned_claim(paper, row.claim)
    lines = exported.sides.get((row.paper, row.claim), [])
    cells = [_add_selection(paper, cell) for cell in _make_cells(row, lines)]
    runs = _list_runs(paper, cells, planned)
    trainings = []
    for run in runs:
        entry = exported.runs.get(str(run), {})
        if entry.get("steps"):  # scores of given weights need no training
            trainings.append(entry)
    curves: Curves = {}
    # The curves of the first planned seeds would show an effect before the last one is run.
    if row.has_planned_seeds:
        curves = _collect_curves(runs, exported.curves)
    return MeasuredClaim(row, cells, trainings, curves, planned)


def _find_planned_claim(paper: Paper, name: str) -> PlannedClaim | None:
    """Find what a plan of the paper says about a claim; None if no plan names it."""
    for planned in paper.list_primary_claims():
        if planned.name == name:
            return planned
    return None


def _list_runs(paper: Paper, cells: list[ComparedCell], planned: PlannedClaim | None) -> list[Run]:
    """List the runs that the cells read.

    Runs of other seeds than the planned ones do not belong to a primary claim.
    """
    seeds_of_variant: dict[VariantKey, set[int]] = defaultdict(set)
    for cell in cells:
        seeds = planned.seeds if planned else cell.seeds
        for variant in _list_variants(paper, cell.key):
            seeds_of_variant[variant].update(seeds)
    runs = []
    for variant, variant_seeds in seeds_of_variant.items():
        runs += [variant.make_run(seed) for seed in sorted(variant_seeds)]
    return runs


def _collect_curves(runs: list[Run], lines: dict[Run, list[dict[str, str]]]) -> Curves:
    """Collect the points of the curves of `runs`; lines: of curves.csv, by run."""
    curves: Curves = defaultdict(dict)
    for run in runs:
        for line in lines.get(run, ()):
            points = curves[line["name"]].setdefault(run, [])
            points.append((int(line["step"]), float(line["value"])))
    return curves


def _make_cells(row: ClaimRow, lines: list[SideRow]) -> list[ComparedCell]:
    """Make the cells of both sides, left and right alternating if they have equally many.

    lines: of claim_sides.csv, those of the claim. A cell that a side names has no values without a
    line; a number, and a cell that a pattern with `*` matches, are there by their lines alone.
    """
    # (side, key of a cell) -> seed -> value, and -> published number
    values: dict[tuple[str, str], dict[int | None, float]] = {}
    published: dict[tuple[str, str], float | None] = {}
    for side, text in (("left", row.left), ("right", row.right)):
        for key in text.split(" + "):
            if "/" in key and "*" not in key:
                values[side, key] = {}
    for line in lines:
        side_and_key = (line.side, line.cell)
        published[side_and_key] = line.published
        by_seed = values.setdefault(side_and_key, {})
        if line.value is not None:
            by_seed[line.seed] = line.value
    labels = _shorten_keys([key for _, key in values])
    sides: dict[str, list[ComparedCell]] = {"left": [], "right": []}
    for (side, key), by_seed in values.items():
        label = labels[key]
        text = row.left if side == "left" else row.right
        if "/" not in text:  # a number, whose cell has the key of the left side
            label = text
        cell = ComparedCell(side, key, label, published.get((side, key)), by_seed)
        sides[side].append(cell)
    return _merge_sides(sides["left"], sides["right"])


def _merge_sides(left: list[ComparedCell], right: list[ComparedCell]) -> list[ComparedCell]:
    """Return left and right cells in turn; sides of unequal length one after the other."""
    if len(left) != len(right):
        return [*left, *right]
    cells = []
    for pair in zip(left, right, strict=True):
        cells += pair
    return cells


def _shorten_keys(keys: list[str]) -> dict[str, str]:
    """Return key of a cell -> its parts that differ between the keys, joined by `, `.

    The parts are display, row, column and metric; if none differs, row and column are returned. A
    key with another number of parts, of a file that was written elsewhere, is returned whole.
    """
    labels = {key: key for key in keys}
    parts_of_key = {key: key.split("/") for key in keys if key.count("/") == KEY_PARTS - 1}
    differing = []
    for position in range(KEY_PARTS):
        if len({parts[position] for parts in parts_of_key.values()}) > 1:
            differing.append(position)
    if not differing:
        differing = [ROW_PART, COLUMN_PART]
    for key, parts in parts_of_key.items():
        labels[key] = ", ".join(parts[position] for position in differing)
    return labels


def _find_table_cells(paper: Paper, key: str) -> list[TableCell]:
    """Find the cells of a row and column in displays.yaml; none for the key of no cell."""
    if key.count("/") != KEY_PARTS - 1:
        return []
    name, row, column, _metric = key.split("/")
    display = paper.displays.get(name)
    if not isinstance(display, TableDisplay):
        return []
    return [cell for cell in display.cells if (cell.row, cell.column) == (row, column)]


def _add_selection(paper: Paper, cell: ComparedCell) -> ComparedCell:
    """Return a cell with what displays.yaml says of its scores."""
    for table_cell in _find_table_cells(paper, cell.key):
        if table_cell.metric == cell.metric:
            return replace(
                cell,
                intervention=table_cell.intervention or "",
                item_set=table_cell.item_set or "",
                is_gain=table_cell.over is not None,
                unit=table_cell.unit or "",
            )
    return cell


def _list_variants(paper: Paper, key: str) -> list[VariantKey]:
    """List the variants whose runs a cell reads, and those that trained their weights."""
    variants: list[VariantKey] = []
    for cell in _find_table_cells(paper, key):
        variants += cell.list_variants()
    trained: list[VariantKey] = []
    for variant in variants:
        task = variant.weights
        # `ft@paws` is not trained: its weights are those of `ft` on the task `paws`. `ft@start` has
        # the weights that `ft` starts from, and no training.
        if task not in (None, START):
            trained.append(variant.trained_variant._replace(task=task))
    return variants + trained
