"""Find the numbers of tables and the verdicts of claims that a call of ./reproduce has changed.

Before the first job of a call, the tables and claims that it will rerun are copied to
NUMBERS_BEFORE.
"""

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from workflow_scripts.common.files import read_csv
from workflow_scripts.workflow.snakemake_job import SnakemakeJob

NUMBERS_BEFORE = Path(".snakemake/numbers")
NO_VERDICT = "no verdict"
SHOWN = 3  # changes in a line


@dataclass(frozen=True)
class Compared:
    """Columns of a CSV file: those that name a row, that of the value, and that of the number.

    A row without a number is not measured: its runs are missing.
    """

    names: tuple[str, ...]
    value: str
    number: str


VERDICTS = Compared(("paper", "claim"), "verdict", "effect")
COMPARED = {
    "table": Compared(("row", "column", "metric"), "reproduced", "reproduced"),
    "claims": VERDICTS,
    "claim": VERDICTS,
}


@dataclass(frozen=True)
class Move:
    """A value before a call and now. name: of a cell, or of a claim."""

    name: str
    before: str
    now: str

    def __str__(self) -> str:
        before, now = _shorten(self.before), _shorten(self.now)
        if before == now:  # they differ in further digits
            before, now = self.before, self.now
        return f"{self.name} {before} → {now}"


def store_numbers(jobs: Iterable[SnakemakeJob]) -> None:
    """Copy the tables and claims of jobs that will run, unless this call has done so before.

    ./reproduce deletes the copies of the call before.
    """
    for job in jobs:
        if job.rule not in COMPARED:
            continue
        file = _find_csv(job.outputs)
        copy = NUMBERS_BEFORE / job.rule / file
        if copy.exists():
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        if file.exists():
            shutil.copy2(file, copy)
        else:
            copy.touch()  # empty: Snakemake may run twice in a call, and then there is a file


def _find_csv(outputs: Iterable[str]) -> Path:
    """Return the file with the cells, or with the verdicts: the first CSV file."""
    return next(Path(file) for file in outputs if file.endswith(".csv"))


def describe_moves() -> list[str]:
    """Return lines about what has changed, and what has not; none if nothing can be compared."""
    tables = _compare_files("table")
    claims = _compare_files("claims")
    single_claims = _compare_files("claim")
    lines = []
    if tables:
        lines.append(_describe_group(tables, "number", "moved", "table"))
    if claims or single_claims:
        lines.append(_describe_group(claims | single_claims, "verdict", "changed", "file"))
    return lines


def _compare_files(rule: str) -> dict[Path, list[Move]]:
    """Return the results of a rule that was rerun, each with what differs in it.

    Left out are those without a value that was there before and is there now.
    """
    moves: dict[Path, list[Move]] = {}
    folder = NUMBERS_BEFORE / rule
    for copy in sorted(folder.rglob("*.csv")):
        file = copy.relative_to(folder)
        # A table that a stopped call has not reached is as old as its copy.
        if not file.exists() or file.stat().st_mtime_ns == copy.stat().st_mtime_ns:
            continue
        pairs = list(find_value_pairs(rule, copy, file))
        if pairs:
            moves[file] = [pair for pair in pairs if pair.before != pair.now]
    return moves


def find_value_pairs(rule: str, before: Path, now: Path) -> Iterator[Move]:
    """Yield the values of two results of a rule, of the rows that are measured in both.

    What is missing because a job has failed, or is there for the first time, has not moved. Claims
    that are never judged at the scale are left out.
    """
    if not before.stat().st_size:
        return
    compared = COMPARED[rule]
    values = _read_values(before, compared)
    for names, value in _read_values(now, compared).items():
        if names not in values or values[names] == value == NO_VERDICT:
            continue
        name = "/".join(names)
        if rule == "table":
            name = f"{now.parent.name}/{now.stem} {' '.join(names)}"
        yield Move(name, values[names], value)


def _read_values(file: Path, compared: Compared) -> dict[tuple[str, ...], str]:
    """Read the values of a file by the names of their rows, without rows that have no number."""
    values = {}
    for row in read_csv(file, (*compared.names, compared.value, compared.number)):
        if row[compared.number]:
            values[tuple(row[name] for name in compared.names)] = row[compared.value]
    return values


def _describe_group(moves_of: dict[Path, list[Move]], noun: str, verb: str, file_noun: str) -> str:
    """Count the changes in some files, and name the first and where they are."""
    moves = [move for file_moves in moves_of.values() for move in file_moves]
    files = [file for file, file_moves in moves_of.items() if file_moves]
    made = f"{len(moves_of)} {file_noun}{'' if len(moves_of) == 1 else 's'}"
    if not moves:
        return f"No {noun} {verb} in {made}"
    shown = "; ".join(map(str, moves[:SHOWN]))
    more = len(moves) - SHOWN
    if more > 0:
        shown += f"; and {more} more"
    count = f"{len(moves)} {noun}{'' if len(moves) == 1 else 's'}"
    return f"{count} {verb} in {len(files)} of {made}: {shown} ({files[0]})"


def _shorten(value: str) -> str:
    """Format a number with four significant digits; a verdict as it is."""
    try:
        return f"{float(value):.4g}"
    except ValueError:
        return value
