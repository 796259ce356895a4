"""The rows of claims.csv and claim_sides.csv: columns, writing, reading, and wording of effects."""

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import MissingFileError, format_csv, parse_decimal, read_csv
from workflow_scripts.config.display_schema import NULLS
from workflow_scripts.reporting.claims.comparison import PRIMARY
from workflow_scripts.reporting.claims.outcome import MEANINGS, NO_VERDICT, VERDICTS
from workflow_scripts.reporting.tables.layout import format_number

HOW_TO_FIX = "if ./reproduce made it, delete it and run ./reproduce again"
PLANNED = "planned"  # what a primary claim is called until the last planned seed is run
# What readers are told in one word, and what it means.
STATE_MEANINGS = MEANINGS | {
    NO_VERDICT: "a control fails or is not measured, or the data are generated",
    PLANNED: "planned seeds are still to be run; no effect is shown before the last one is",
}
STATES = tuple(STATE_MEANINGS)
CHANCE = "chance"  # unit of the measure superiority, which has no sign
DECIMALS = {"points": 1, "ratio": 4}  # of effects, by their unit
OTHER_DECIMALS = 2  # of effects in all other units
MOST_DECIMALS = 6  # as many digits as numbers of claims.csv have


@dataclass(frozen=True, kw_only=True)
class ClaimRow:
    """A row of claims.csv, with its columns in their order; effects are in the claimed direction.

    Texts are empty, and numbers None, where a column does not apply.
    """

    paper: str
    claim: str
    kind: str
    role: str
    plan: str = ""
    statement: str = ""
    quote: str = ""
    source: str = ""
    left: str = ""
    right: str = ""
    relation: str = ""
    published_effect: float | None = None
    printed: str = ""
    effect: float | None = None
    unit: str = ""
    at_least: float | None = None
    smallest_effect: float | None = None
    quantile: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    test: str = ""
    degrees_of_freedom: float | None = None
    p_value: float | None = None
    q_value: float | None = None
    n_seeds: int | None = None
    n_planned: int | None = None
    protocol: str = ""
    verdict: str
    reason: str = ""
    caveat: str = ""

    @property
    def is_primary(self) -> bool:
        """Whether an analysis plan of the paper names the claim."""
        return self.role == PRIMARY

    @property
    def is_control(self) -> bool:
        """Whether the claim is a control of ours, and no claim of the paper."""
        return self.kind == "control"

    @property
    def has_planned_seeds(self) -> bool:
        """Whether all planned seeds are run; true of claims without a plan."""
        return (self.n_seeds or 0) >= (self.n_planned or 0)

    @property
    def is_planned(self) -> bool:
        """Whether planned seeds of a primary claim are still to be run."""
        return self.verdict == NO_VERDICT and not self.has_planned_seeds

    @property
    def cause(self) -> str:
        """Why seeds of a planned claim are not run, where that is known; else empty."""
        _, _, cause = self.reason.partition("; ")  # after their number
        return cause

    @property
    def state(self) -> str:
        """The verdict, or `planned`: what readers are told in one word."""
        return PLANNED if self.is_planned else self.verdict

    @property
    def explanation(self) -> str:
        """Why it has this verdict; of a planned claim `0 of 12 seeds run, no verdict yet`."""
        if not self.is_planned:
            return self.reason
        text = f"{self.n_seeds or 0} of {self.n_planned} seeds run, no verdict yet"
        return f"{text}; {self.cause}" if self.cause else text

    @property
    def null(self) -> float:
        """The effect if both sides are alike."""
        if self.unit == CHANCE:
            return NULLS["superiority"]
        return 0.0

    @property
    def margin(self) -> float:
        """The size that the effect must exceed; that of `no_gain` is below 0."""
        size = self.at_least or 0.0
        if self.relation == "no_gain":
            return 0.0 - size  # not -0.0
        return size


@dataclass(frozen=True, kw_only=True)
class SideRow:
    """A row of claim_sides.csv: a value of one cell of a side of a claim, in the columns' order.

    side: left or right. published: the number that the paper prints for the cell. seed: None for a
    number without seeds. value: None without a measurement.
    """

    paper: str
    claim: str
    side: str
    cell: str
    published: float | None
    seed: int | None
    value: float | None


CLAIM_COLUMNS = tuple(column.name for column in fields(ClaimRow))
SIDE_COLUMNS = tuple(column.name for column in fields(SideRow))
Row = TypeVar("Row", ClaimRow, SideRow)


def format_claim_rows(rows: Iterable[ClaimRow]) -> str:
    """Return the content of claims.csv."""
    return _format_rows(CLAIM_COLUMNS, rows)


def format_side_rows(rows: Iterable[SideRow]) -> str:
    """Return the content of claim_sides.csv."""
    return _format_rows(SIDE_COLUMNS, rows)


def _format_rows(columns: tuple[str, ...], rows: Iterable[ClaimRow | SideRow]) -> str:
    """Format rows as CSV with these columns."""
    lines = []
    for row in rows:
        lines.append({name: _format_value(getattr(row, name)) for name in columns})
    return format_csv(columns, lines)


def _format_value(value: str | float | None) -> str:
    """Format a value of a column; numbers have six digits, counts and seeds all of theirs."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


def read_claim_rows(path: Path) -> list[ClaimRow]:
    """Read claims.csv. Raises UserError if the file is missing or incomplete."""
    if not path.exists():
        raise MissingFileError(path)
    lines = read_csv(path, CLAIM_COLUMNS)
    if any(line["verdict"] not in VERDICTS for line in lines):
        raise UserError(f"{path}: not a complete claims.csv; {HOW_TO_FIX}")
    return _parse_rows(ClaimRow, lines, path)


def read_side_rows(path: Path) -> list[SideRow]:
    """Read claim_sides.csv. Raises UserError if the file is missing or incomplete."""
    if not path.exists():
        raise MissingFileError(path)
    return _parse_rows(SideRow, read_csv(path, SIDE_COLUMNS), path)


def _parse_rows(row_type: type[Row], lines: list[dict[str, str]], path: Path) -> list[Row]:
    """Parse the lines of a file below its header. Raises UserError for a cell that is no number."""
    rows = []
    for number, line in enumerate(lines, start=2):
        values = {}
        for column in fields(row_type):
            place = f"{path}: line {number}: {column.name}"
            values[column.name] = _parse_value(line[column.name], column.type, place)
        rows.append(row_type(**values))
    return rows


def _parse_value(text: str, kind: Any, place: str) -> str | int | float | None:
    """Return the value of a cell of type `kind`: `str`, `int | None` or `float | None`.

    Raises UserError, beginning with `place`, for what is no number.
    """
    if kind is str:
        return text
    number_type: type[int] | type[float] = float
    if kind == int | None:
        number_type = int
    try:
        number = parse_decimal(text, number_type)
    except ValueError as error:
        raise UserError(f"{place} is {text[:100]!r}, not a number; {HOW_TO_FIX}") from error
    if isinstance(number, int) and number < 0:
        raise UserError(f"{place} is {number}, a count below 0; {HOW_TO_FIX}")
    return number


def describe_primary_claims(rows: Collection[ClaimRow]) -> str:
    """Say how many primary claims there are: `12 primary claims (11 of papers, 1 control of ours)`.

    rows: primary claims. Without a control the number alone.
    """
    count = f"{len(rows)} primary claims"
    if not any(row.is_control for row in rows):
        return count
    return f"{count} ({count_kinds(rows)})"


def count_kinds(rows: Collection[ClaimRow]) -> str:
    """Count claims by kind: `11 of papers, 1 control of ours`; the first part alone if all are."""
    controls = sum(row.is_control for row in rows)
    text = f"{len(rows) - controls} of papers"
    if controls:
        plural = "control" if controls == 1 else "controls"
        text += f", {controls} {plural} of ours"
    return text


def format_effect(row: ClaimRow) -> str:
    """Format the effect: `−6.3 points (96.7%: −9.0 to −3.6)`; empty without an effect."""
    if row.effect is None:
        return ""
    decimals = choose_decimals(row)
    effect = f"{format_number(row.effect, decimals, signed=row.unit != CHANCE)} {row.unit}"
    if row.ci_low is None or row.ci_high is None or row.quantile is None:
        return effect
    confidence = 2 * row.quantile - 1  # of an interval with this quantile as each of its limits
    percent = f"{100 * confidence:.1f}".removesuffix(".0")
    low = format_number(row.ci_low, decimals)
    high = format_number(row.ci_high, decimals)
    return f"{effect} ({percent}%: {low} to {high})"


def format_published_effect(row: ClaimRow) -> str:
    """Format the published effect: `+8.2 points`; empty without one."""
    if row.published_effect is None:
        return ""
    decimals = DECIMALS.get(row.unit, OTHER_DECIMALS)
    number = format_number(row.published_effect, decimals, signed=row.unit != CHANCE)
    return f"{number} {row.unit}"


def choose_decimals(row: ClaimRow) -> int:
    """Return the decimals of a row's effect and of its interval.

    They are those of the unit, or more: the width of an interval has two digits, and an end never
    rounds onto or across a bound that decides the verdict.
    """
    decimals = DECIMALS.get(row.unit, OTHER_DECIMALS)
    if row.ci_low is not None and row.ci_high is not None and row.ci_high > row.ci_low:
        # As many decimals as show the first two digits of the width.
        decimals_of_width = 1 - math.floor(math.log10(row.ci_high - row.ci_low))
        decimals = max(decimals, min(4, decimals_of_width))
    while decimals < MOST_DECIMALS and not _is_each_end_on_its_side(row, decimals):
        decimals += 1
    return decimals


def _is_each_end_on_its_side(row: ClaimRow, decimals: int) -> bool:
    """Whether both ends of the interval, rounded, are on the same side of each bound as before."""
    bounds = [row.margin]
    if row.smallest_effect is not None:
        bounds.append(row.smallest_effect)
    for end in (row.ci_low, row.ci_high):
        if end is None:
            continue
        rounded = round(end, decimals)
        for bound in bounds:
            is_above_as_before = (rounded > bound) == (end > bound)
            is_below_as_before = (rounded < bound) == (end < bound)
            if not (is_above_as_before and is_below_as_before):
                return False
    return True
