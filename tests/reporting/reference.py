"""The committed scores, by seed, of results/reference/small, and what follows from them.

`python -m tests.reporting.reference` rewrites claims.csv and claim_sides.csv there from the scores,
and the tables of which a cell is missing or differs; of every table the LaTeX, from its Markdown.
"""

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.analyses.small_runs import ROOT
from workflow_scripts.common.files import make_scratch_folder
from workflow_scripts.common.result_folders import ExportFolder
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.reporting.claims.judging import write_claims
from workflow_scripts.reporting.committed.committed_tables import (
    ComparedTable,
    compare_tables,
    parse_cells,
)
from workflow_scripts.reporting.committed.recomputing import recompute_claims
from workflow_scripts.reporting.committed.restoring import RestoredExport, restore_export
from workflow_scripts.reporting.tables.parsed_markdown import format_parsed_table

REFERENCE = ROOT / "results/reference/small"
PAPERS = ("carma", "cat", "lrf", "sq_transformer")


def rows_of(name: str) -> list[dict[str, str]]:
    with open(REFERENCE / name, newline="") as stream:
        return list(csv.DictReader(stream))


@contextmanager
def restored_reference(folder: Path = REFERENCE) -> Iterator[RestoredExport]:
    """The committed scores in the layout of results/small, for the block."""
    with make_scratch_folder() as scratch:
        yield restore_export(load_catalogue(ROOT), ExportFolder(folder), Path(scratch))


def write_reference(out: Path = REFERENCE / "claims.csv", folder: Path = REFERENCE) -> None:
    """The verdicts that follow from the scores in a folder, as claims.csv with claim_sides.csv next
    to it.
    """
    with restored_reference(folder) as restored:
        write_claims(out, recompute_claims(restored).outcomes)


def make_committed_tables() -> Iterator[ComparedTable]:
    """Each table of PAPERS that has something to show, next to the same from the scores."""
    with restored_reference() as restored:
        yield from compare_tables(restored)


def read_committed_table(name: str) -> dict[tuple[str, str, str], dict[str, str]]:
    """The rows of a committed table, `<paper>/<table>`, by row, column and metric."""
    return parse_cells((REFERENCE / f"tables/{name}.csv").read_text())


def write_tables() -> None:
    """Write the committed tables that are missing or differ from the scores, if the scores tell all
    of their cells.
    """
    for table in make_committed_tables():
        name = f"{table.paper}/{table.name}"
        if table.differing_words:
            write_words(REFERENCE / f"tables/{name}.md", table.made.files["md"])
        if not (table.differing or table.differing_texts) or not table.has_numbers:
            continue
        assert not table.unknown, (
            f"{name}: {table.differing} differ; ./reproduce makes it: the scores of {table.unknown} are not here"
        )
        for suffix in ("csv", "md"):
            file = REFERENCE / f"tables/{name}.{suffix}"
            file.write_text(table.made.files[suffix], encoding="utf-8")
            print(file.relative_to(ROOT))


def write_words(file: Path, made: str) -> None:
    """Write title and first note of a table as `made` has them into its Markdown."""
    lines = file.read_text(encoding="utf-8").splitlines()
    made_lines = made.splitlines()
    lines[0] = made_lines[0]
    lines[find_first_note(lines)] = made_lines[find_first_note(made_lines)]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(file.relative_to(ROOT))


def find_first_note(lines: list[str]) -> int:
    return next(number for number, line in enumerate(lines) if line.startswith("- "))


def write_latex() -> None:
    """Write the LaTeX of each committed table, of which its Markdown has all that is in it."""
    for table in ExportFolder(REFERENCE).list_tables():
        text = format_parsed_table(
            f"{table.folder.name}/{table.name}", table.markdown.read_text(encoding="utf-8")
        )
        table.latex.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_reference()
    write_tables()
    write_latex()
