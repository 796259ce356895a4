"""Make the tables of an export again from its scores, and compare their cells."""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass

from workflow_scripts.common.result_folders import TableFiles
from workflow_scripts.config.display_schema import TableDisplay
from workflow_scripts.config.displays import select_display_runs
from workflow_scripts.reporting.committed.recomputing import Fault, list_committed_papers
from workflow_scripts.reporting.committed.restoring import (
    RestoredExport,
    list_counted_runs,
    write_manifests,
)
from workflow_scripts.reporting.tables.cells import COMPUTED, MEASURED, WITHHELD
from workflow_scripts.reporting.tables.table import RenderedTable, make_table

# What a table shows of a cell. The note of a measured one may tell of a test over examples.
SHOWN = ("reproduced", "std", "n_seeds", "ci_low", "ci_high", "protocol", "status")
WITH_NUMBERS = (MEASURED, COMPUTED, WITHHELD)

CellPlace = tuple[str, str, str]  # row, column, metric
CellRow = dict[str, str]  # of a table's CSV


@dataclass(frozen=True)
class ComparedTable:
    """A table of an export next to the same table made from the export's scores.

    differing: cells that differ. unknown: cells of whose scores none is in the export.
    """

    paper: str
    name: str
    made: RenderedTable
    committed: dict[CellPlace, CellRow]
    expected: dict[CellPlace, CellRow]

    @property
    def unknown(self) -> list[CellPlace]:
        """Cells of whose scores none is in the export."""
        places = []
        for place, row in self.committed.items():
            if has_number(row) and not has_number(self.expected.get(place, {})):
                places.append(place)
        return places

    @property
    def differing(self) -> list[CellPlace]:
        """Cells that are otherwise in the export than by its scores."""
        unknown = set(self.unknown)
        places = []
        for place, row in self.expected.items():
            committed = self.committed.get(place, {})
            if place not in unknown and list_shown(committed) != list_shown(row):
                places.append(place)
        return places

    @property
    def has_numbers(self) -> bool:
        """Whether the scores give it a number."""
        return any(has_number(row) for row in self.expected.values())

    def count_equal(self) -> int:
        """Return the number of cells with a number that are equal."""
        other = {*self.unknown, *self.differing}
        return sum(has_number(row) for place, row in self.expected.items() if place not in other)

    def list_faults(self) -> list[Fault]:
        """Return a fault for each cell that differs."""
        faults = []
        for place in self.differing:
            committed = self.committed.get(place, {})
            expected = self.expected[place]
            texts = []
            for name in (*SHOWN, "note"):
                value = committed.get(name, "")
                if value != expected[name] and (name != "note" or not texts):
                    is_now = value or "empty"
                    texts.append(f"{name} is {is_now}, by the scores {expected[name] or 'empty'}")
            cell = "/".join((self.name, *place))
            faults.append(Fault(f"{self.paper}/{cell}", ", ".join(texts)))
        return faults


def compare_tables(restored: RestoredExport) -> Iterator[ComparedTable]:
    """Yield each table of the papers of an export that has something to show.

    The marks of tests over examples need the texts of the data, and are left out.
    """
    catalogue = restored.catalogue
    for paper in list_committed_papers(restored):
        runs = list_counted_runs(restored, paper).others
        write_manifests(restored, runs)
        for name, display in catalogue.papers[paper].select_shown_displays(runs).items():
            if not isinstance(display, TableDisplay):
                continue
            shown_runs = select_display_runs(display, runs)
            made = make_table(restored.get_paper_results(paper), name, shown_runs, tests={})
            committed = read_committed_cells(restored.export.table(paper, name))
            yield ComparedTable(paper, name, made, committed, parse_cells(made.files["csv"]))


def read_committed_cells(table: TableFiles) -> dict[CellPlace, CellRow]:
    """Read the cells of a table by their places; none of a table that is not there."""
    if not table.csv.exists():
        return {}
    return parse_cells(table.csv.read_text(encoding="utf-8"))


def parse_cells(text: str) -> dict[CellPlace, CellRow]:
    """Return the rows of a table's CSV by row, column and metric."""
    rows = csv.DictReader(io.StringIO(text))
    return {(row["row"], row["column"], row["metric"]): row for row in rows}


def has_number(row: CellRow) -> bool:
    """Whether a cell has a number, which may be withheld."""
    return row.get("status") in WITH_NUMBERS


def list_shown(row: CellRow) -> list[str]:
    """Return what a table shows of a cell."""
    names: list[str] = list(SHOWN)
    if row.get("status") != MEASURED:
        names.append("note")
    return [row.get(name, "") for name in names]
