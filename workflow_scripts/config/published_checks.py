"""Check published.csv: its columns, and the unit and value of each number."""

import csv
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from workflow_scripts.common.validation import find_close_name, suggest_name
from workflow_scripts.evaluation.published_numbers import PUBLISHED_COLUMNS, Published

# A number as papers print it: 1,231, +3.61%, ~1%, 85M, 2.5±2.7, 56.31 ± 2, 47.36 (2.1)†.
PRINTED_NUMBER = re.compile(
    r"""
    (?: ~ | ≈ | about )? \s*
    (?P<number> [-+−–]? (?: \d{1,3} (?: ,\d{3} )+ (?: \.\d+ )? | \d+ (?: \.\d+ )? | \.\d+ ) )
    \s* (?P<suffix> [%KMB] )?
    (?: \s* (?: ± | \+/- ) \s* [\d.]+ %? | \s* \( [\d.]+ %? \) )?
    \s* [*†‡]*
    """,
    re.VERBOSE,
)
COUNTS = {"K": 1e3, "M": 1e6, "B": 1e9}  # letter after a number -> factor
UNITS_OF_COUNTS = {"million": 1e6}


class PrintedNumber(NamedTuple):
    """The number in a printed text. suffix: the letter or the percent sign after it, or empty."""

    number: float
    suffix: str

    def list_values(self, unit: str) -> list[float]:
        """List what the value in a unit may be, the most likely first.

        A number of a unit percent that is printed without a percent sign may be a fraction.
        """
        if self.suffix in COUNTS:
            return [self.number * COUNTS[self.suffix] / UNITS_OF_COUNTS.get(unit, 1.0)]
        values = [self.number]
        if unit == "percent" and not self.suffix and abs(self.number) <= 1:
            values.append(self.number * 100)
        return values


def read_printed_number(text: str) -> PrintedNumber | None:
    """Return the number that a printed text is; None for a bound, words or another notation."""
    match = PRINTED_NUMBER.fullmatch(text.strip())
    if match is None:
        return None
    digits = re.sub("[−–]", "-", match["number"]).replace(",", "")
    return PrintedNumber(float(digits), match["suffix"] or "")


def check_published_columns(file: Path) -> Iterator[str]:
    """Yield each column that published.csv lacks, and each that it must not have.

    A misspelt column is named once. A file that cannot be read is no matter of its columns.
    """
    if not file.is_file():
        return
    with file.open(encoding="utf-8-sig", errors="replace", newline="") as stream:
        columns = next(csv.reader(stream), [])
    missing = [column for column in PUBLISHED_COLUMNS if column not in columns]
    unknown = [column for column in columns if column not in PUBLISHED_COLUMNS]
    for column in unknown:
        suggestion = suggest_name(column, missing or PUBLISHED_COLUMNS)
        yield f"{file}:1: unknown column '{column}'; {suggestion}"
    for column in missing:
        if find_close_name(column, unknown) is None:
            after = _find_column_before(column)
            yield f"{file}:1: the column '{column}' is missing; add it{after} to every line"


def _find_column_before(column: str) -> str:
    """Return after which other column a column comes, in words; empty for the first one."""
    position = PUBLISHED_COLUMNS.index(column)
    if position == 0:
        return ""
    return f" after '{PUBLISHED_COLUMNS[position - 1]}'"


def check_number(
    cell: str, published: Published, unit: str | None, is_bounded: bool
) -> Iterator[str]:
    """Yield where the unit or the value of a published number is not what its cell has or prints.

    unit: that of the cell; None if it is not known. is_bounded: a percentage is of a whole, and at
    most 100.
    """
    if unit and published.unit != unit:
        problem = f"unit is '{published.unit}', but {cell} is in {unit}"
        yield f"{published.where}: {problem}; write {unit}, and the value in it"
    if published.value is None:
        return
    unit = unit or published.unit
    printed = read_printed_number(published.printed)
    values = [] if printed is None else printed.list_values(unit)
    if values and not any(math.isclose(published.value, value) for value in values):
        problem = f"value is {published.value:g}, but '{published.printed}' is printed"
        yield f"{published.where}: {problem}; write {values[0]:.10g}"
    elif unit == "percent" and is_bounded and not -100 <= published.value <= 100:
        problem = f"value is {published.value:g}, which is no percentage"
        advice = "correct it, or for a gain over another score write `relative: true` in its cell"
        yield f"{published.where}: {problem}; {advice}"
