"""What a claim compares: the cells of its two sides, and the limits by which it is judged."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from workflow_scripts.common.errors import UserError
from workflow_scripts.config.analysis_plan import PlannedClaim
from workflow_scripts.config.display_schema import Claim, list_cells, match_stars
from workflow_scripts.evaluation.seeds import list_common_seeds
from workflow_scripts.evaluation.statistics import QUANTILE
from workflow_scripts.reporting.tables.cells import COMPUTED, MEASURED, NOT_RUN, Cell

EXPLORATORY = "exploratory"
PRIMARY = "primary"
QUARTER = 0.25  # of the published effect: less than this above the margin is not reproduced
STAR_RULE = "only falls_with has it, once on either side"
NO_VALUE = "no seed has a value in all cells of a side"


class NoEffectError(Exception):
    """The scores of a claim exist but give no effect; the message says why."""


@dataclass(frozen=True)
class PaperCells:
    """The cells of all tables of a paper.

    by_key: cell by display/row/column/metric. claims_file: papers/<paper>/claims.yaml, which names
    them, for messages.
    """

    by_key: Mapping[str, Cell]
    claims_file: str

    def find(self, key: str, claim: Claim) -> Cell:
        """Return the cell that a claim names. Raises UserError if there is none."""
        place = self.place(claim)
        if "*" in key.split("/"):
            raise UserError(f"{place}: '*' in {key}; {STAR_RULE}")
        if key not in self.by_key:
            raise UserError(f"{place}: there is no cell {key} in displays.yaml")
        return self.by_key[key]

    def find_row(self, pattern: str, claim: Claim) -> dict[str, Cell]:
        """Return the cells that a pattern of a trend matches, by the text in place of `*`.

        Raises UserError for a pattern without exactly one `*`, or if no cell matches.
        """
        place = self.place(claim)
        if pattern.split("/").count("*") != 1:
            raise UserError(f"{place}: '*' in {pattern}; {STAR_RULE}")
        cells: dict[str, Cell] = {}
        for key, cell in self.by_key.items():
            texts = match_stars(pattern, key)
            if texts is not None:
                cells["".join(texts)] = cell
        if not cells:
            raise UserError(f"{place}: there is no cell {pattern} in displays.yaml")
        return cells

    def place(self, claim: Claim) -> str:
        """Return where a claim is, for messages."""
        return f"{self.claims_file}: claim {claim.claim}"


@dataclass(frozen=True)
class Side:
    """One side of a claim: one or several cells with their seeds. A number is a computed cell."""

    cells: tuple[Cell, ...]

    @property
    def n_complete_seeds(self) -> float:
        """Number of seeds that all cells have; infinite for numbers without seeds."""
        cells = [cell for cell in self.cells if cell.status != COMPUTED]
        if not cells:
            return math.inf
        return len(list_common_seeds(cell.seeds for cell in cells))

    @property
    def is_number(self) -> bool:
        """Whether the side has no seeds."""
        return self.cells[0].status == COMPUTED

    @property
    def number(self) -> float:
        """The mean over cells without seeds.

        Raises NoEffectError if one of them has no number: one of which no logarithm can be taken.
        """
        values = []
        for cell in self.cells:
            if cell.computed is None:
                raise NoEffectError(NO_VALUE)
            values.append(cell.computed)
        return float(np.mean(values))

    @property
    def mean(self) -> float:
        """Mean over cells and seeds."""
        return float(np.mean([cell.mean for cell in self.cells]))

    def average_by_seed(self) -> dict[int, float]:
        """Return seed -> mean over the cells, for seeds that all cells have."""
        averages = {}
        for seed in list_common_seeds(cell.seeds for cell in self.cells):
            values = [cell.seeds[seed] for cell in self.cells]
            averages[seed] = float(np.mean(values))
        return averages


@dataclass(frozen=True)
class Comparison:
    """The two sides of a claim, and the limits of its verdict.

    published: the effect in the paper's numbers, None if it prints none. planned: what the analysis
    plan says about a primary claim; an exploratory one has no plan.
    """

    claim: Claim
    sides: tuple[Side, Side]
    published: float | None
    planned: PlannedClaim | None = None

    @property
    def role(self) -> str:
        """Whether the claim is primary or exploratory."""
        return EXPLORATORY if self.planned is None else PRIMARY

    @property
    def pairs(self) -> list[tuple[Cell, Cell]]:
        """The cells that are compared with each other."""
        left, right = self.sides
        return list(zip(left.cells, right.cells, strict=True))

    @property
    def n_planned(self) -> int | None:
        """How many seeds per side the plan of a primary claim has."""
        if self.planned is None:
            return None
        return len(self.planned.seeds)

    @property
    def quantile(self) -> float:
        """The quantile of Student's t for both ends of the interval."""
        if self.planned is None:
            return QUANTILE
        return self.planned.plan.limit_quantile

    @property
    def smallest(self) -> float | None:
        """The smallest effect of interest.

        It is that of the plan, or a quarter of the published effect above the margin, as far as
        that is beyond two sides that are alike. None if the paper prints no effect in the claimed
        direction.
        """
        if self.planned is not None:
            return self.planned.entry.smallest
        if self.published is None or self.claim.relation == "no_gain":
            return None
        published_gain = self.published - self.claim.null
        if published_gain <= 0:
            return None
        return self.claim.margin + QUARTER * published_gain

    @property
    def lower_bound(self) -> float:
        """What an interval is below if the claim is not reproduced.

        It is the smallest effect of interest, or the margin if there is none.
        """
        if self.smallest is None:
            return self.claim.margin
        return self.smallest

    @property
    def printed(self) -> str:
        """Whether the paper's own numbers `agree` with the claim or `contradict` it.

        Empty if it prints none.
        """
        if self.published is None:
            return ""
        if self.published > self.claim.margin:
            return "agree"
        return "contradict"


def select_sides(
    claim: Claim, cells: PaperCells, seeds: list[int] | None = None
) -> tuple[Side, Side]:
    """Return the cells of both sides in pairs, with all of their seeds or with `seeds` only.

    Raises UserError for an unknown cell.
    """
    pairs = _pair_cells(claim, cells)
    if seeds is not None:
        pairs = [(_keep_seeds(left, seeds), _keep_seeds(right, seeds)) for left, right in pairs]
    return split_pairs(pairs)


def split_pairs(pairs: list[tuple[Cell, Cell]]) -> tuple[Side, Side]:
    """Return the left and the right side of pairs of cells."""
    left = Side(tuple(left for left, _ in pairs))
    right = Side(tuple(right for _, right in pairs))
    return left, right


def _pair_cells(claim: Claim, cells: PaperCells) -> list[tuple[Cell, Cell]]:
    """Return the cells that a claim compares, pair by pair. A number is a cell without seeds."""
    if claim.relation == "falls_with":
        return _pair_rows(claim, cells)
    left = [cells.find(key, claim) for key in list_cells(claim.left)]
    if isinstance(claim.right, int | float):
        right = [_make_number_cell(cell, claim.right) for cell in left]
    else:
        right = [cells.find(key, claim) for key in list_cells(claim.right)]
    return list(zip(left, right, strict=True))


def _pair_rows(claim: Claim, cells: PaperCells) -> list[tuple[Cell, Cell]]:
    """Return the pairs of cells of a trend: those that both sides have."""
    (left_pattern,) = list_cells(claim.left)
    (right_pattern,) = list_cells(claim.right)
    left_by_name = cells.find_row(left_pattern, claim)
    right_by_name = cells.find_row(right_pattern, claim)
    pairs = []
    for name, left in left_by_name.items():
        if name in right_by_name:
            pairs.append((left, right_by_name[name]))
    return pairs


def _make_number_cell(cell: Cell, number: float) -> Cell:
    """Return a cell like `cell` that has a number and no seeds."""
    return replace(cell, status=COMPUTED, computed=number, published=None, seeds={}, weights="")


def _keep_seeds(cell: Cell, seeds: list[int]) -> Cell:
    """Drop the other seeds of a cell; a measured one without any of `seeds` is not run."""
    kept = {seed: value for seed, value in cell.seeds.items() if seed in seeds}
    if cell.status == MEASURED and not kept:
        return replace(cell, seeds=kept, status=NOT_RUN)
    return replace(cell, seeds=kept)
