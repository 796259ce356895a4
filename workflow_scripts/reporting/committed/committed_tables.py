"""Make the tables of an export again from its scores, and compare their cells."""

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

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
from workflow_scripts.reporting.tables.markdown_text import parse_table_text
from workflow_scripts.reporting.tables.table import RenderedTable, make_table

# What a table shows of our number, and next to it.
OURS = ("reproduced", "std", "n_seeds", "ci_low", "ci_high", "protocol", "status")
# What it shows of a cell. The note of a measured one may tell of a test over examples.
SHOWN = (*OURS, "published", "published_std", "difference", "unit")
MARK = re.compile(r"[†‡]|\$\\d?dagger\$")  # of a test over examples
WITH_NUMBERS = (MEASURED, COMPUTED, WITHHELD)

CellPlace = tuple[str, str, str]  # row, column, metric
CellRow = dict[str, str]  # of a table's CSV


@dataclass(frozen=True)
class ComparedTable:
    """A table of an export next to the same table made from the export's scores.

    texts: the content of its files by their ending, without those that are not there.
    """

    paper: str
    name: str
    display: TableDisplay
    made: RenderedTable
    committed: dict[CellPlace, CellRow]
    expected: dict[CellPlace, CellRow]
    texts: dict[str, str]

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

    @property
    def differing_texts(self) -> list[str]:
        """The endings of the files that show other cells than the scores give.

        Empty where the scores do not tell all cells.
        """
        if self.unknown:
            return []
        endings = []
        for ending, text in self.texts.items():
            if list_text_rows(text) != list_text_rows(self.made.files[ending]):
                endings.append(ending)
        return endings

    @property
    def differing_words(self) -> list[str]:
        """Which words of the Markdown are not those of displays.yaml: `title`, `note`, or none.

        Notes on the data and the tests are left out: they need the data.
        """
        if "md" not in self.texts:
            return []
        title, notes = parse_table_text(self.texts["md"])
        names = []
        if not title.startswith(f"{self.display.source}: {self.display.title} ("):
            names.append("title")
        if self.display.note and self.display.note.strip() not in notes:
            names.append("note")
        return names

    def count_equal(self) -> int:
        """Return the number of cells with a number that are equal."""
        other = {*self.unknown, *self.differing}
        return sum(has_number(row) for place, row in self.expected.items() if place not in other)

    def list_faults(self) -> list[Fault]:
        """Return a fault for each cell that differs, or for each file where only its text does."""
        faults = []
        if not self.differing:
            for ending in self.differing_texts:
                faults.append(self._describe_text(ending))
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

    def list_word_faults(self) -> list[Fault]:
        """Return a fault for a title or a note that is not that of displays.yaml."""
        faults = []
        for name in self.differing_words:
            text = f"its {name} is not that of papers/{self.paper}/displays.yaml"
            faults.append(Fault(f"{self.paper}/{self.name}.md", text))
        return faults

    def _describe_text(self, ending: str) -> Fault:
        """Name the first row of a file that differs."""
        rows = list_text_rows(self.texts[ending])
        expected = list_text_rows(self.made.files[ending])
        name = f"{self.paper}/{self.name}.{ending}"
        for row, expected_row in zip_longest(rows, expected, fillvalue="missing"):
            if row != expected_row:
                return Fault(name, f"a row is {row}, by the scores {expected_row}")
        raise AssertionError("the rows differ")


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
            files = restored.export.table(paper, name)
            committed = read_committed_cells(files)
            expected = parse_cells(made.files["csv"])
            texts = {}
            for file in (files.markdown, files.latex):
                if file.exists():
                    texts[file.suffix.removeprefix(".")] = file.read_text(encoding="utf-8")
            yield ComparedTable(paper, name, display, made, committed, expected, texts)


def read_committed_cells(table: TableFiles) -> dict[CellPlace, CellRow]:
    """Read the cells of a table by their places; none of a table that is not there."""
    if not table.csv.exists():
        return {}
    return parse_cells(table.csv.read_text(encoding="utf-8"))


def list_text_rows(text: str) -> list[str]:
    """Return the rows of a table in Markdown or LaTeX, without the marks of tests over examples."""
    without_marks = MARK.sub("", text)
    return [line for line in without_marks.splitlines() if line.startswith("|") or "&" in line]


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
