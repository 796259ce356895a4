"""Displays, published numbers and claims of papers/*/ agree with each other and with the papers."""

import re
from collections import Counter
from functools import cache
from itertools import dropwhile, takewhile
from pathlib import Path

import pytest

from workflow_scripts.config.display_schema import FigureDisplay, TableDisplay
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.evaluation.published_numbers import read_published
from workflow_scripts.reporting.claims.comparison import PaperCells
from workflow_scripts.reporting.claims.verdicts import judge_claims
from workflow_scripts.reporting.evidence.evidence import Evidence
from workflow_scripts.reporting.tables.cells import make_cells

# Where a table's text has more than one row of headings, or more than one column of names.
HEADINGS = {("sq_transformer", "table2"): 2, ("cat", "table2"): 2, ("cat", "table3"): 3}
# model, version, task, intervention
NAMES = {("carma", table): 4 for table in ("table1", "table4", "table5")}
# How many numbers outside its tables a paper prints, counted by reading it: what is left out of
# published.csv is found. Section 1 of SQ-Transformer: figure 1's caption and text 2, ADDJUMP,
# AROUNDRIGHT, COGS, BLEU and CTER 2 each. Its table 6 is no table of cells in the text at hand, but
# 48 sentences and 48 others. Section 5.1 of CARMA gives +1.0% for two models. Tables 1, 5 and 6 of
# CAT are examples: only scores are numbers there. Its table 2 has 18; the 6 of PAWS are listed
# under two readings of their metric.
IN_TEXT = {
    "sq_transformer": {
        "text-1": 12,
        "text-5.2": 2,
        "text-5.3": 2,
        "text-c1": 1,
        "text-fig8": 5,
        "table6": 96,
    }
    | {"table-readings": 4},
    "carma": {"text-5.1": 9, "text-5.2": 18, "text-5.3": 5},
    "lrf": {"text-1": 4, "table-cognition": 2},
    "cat": {"table1": 4, "table2": 24, "table5": 4, "table6": 4, "text-5.2": 2, "text-gains": 24},
}
# Rows that have no name in the paper: we number them.
NUMBERED = {("sq_transformer", "table6"): [str(number) for number in range(1, 49)]}
UNDER_CAPTION = {"cat"}  # the others have their captions under the tables

ROOT = Path(__file__).parents[2]
PAPERS = sorted(ROOT.glob("papers/*/displays.yaml"))
pytestmark = pytest.mark.parametrize(
    "folder", [path.parent for path in PAPERS], ids=lambda folder: folder.name
)


@cache
def displays(folder):
    return load_catalogue(ROOT).papers[folder.name].displays


@cache
def tables(folder):
    return {
        name: display
        for name, display in displays(folder).items()
        if isinstance(display, TableDisplay)
    }


@cache
def cells(folder):
    evidence = Evidence(folder.name, "small", read_published(folder / "published.csv"), {}, {})
    return {
        cell.key: cell
        for name, display in tables(folder).items()
        for cell in make_cells(name, display, evidence)
    }


def test_names_are_unique(folder):
    for name, display in tables(folder).items():
        for names in (
            [row.row for row in display.rows],
            [column.column for column in display.columns],
        ):
            assert len(names) == len(set(names)), name
        if display.baseline:
            assert display.baseline in [row.row for row in display.rows], name


def test_every_published_number_has_its_cell(folder):
    shown = {cell.key for cell in cells(folder).values() if cell.published}
    figures = {
        name for name, display in displays(folder).items() if isinstance(display, FigureDisplay)
    }
    for key in read_published(folder / "published.csv"):
        assert key[0] in figures or "/".join(key) in shown, key


def test_units_agree_and_are_said_once(folder):
    """The line of units says `percent` of correlations too: a note that says `times 100` would seem
    to say another.
    """
    for cell in cells(folder).values():
        assert cell.published is None or cell.published.unit == cell.unit, cell.key
    for name, display in tables(folder).items():
        units = {cell.unit for cell in cells(folder).values() if cell.display == name}
        assert "percent" not in units or "times 100" not in (display.note or ""), name


def test_values_are_what_is_printed(folder):
    """`99.42±1.0` has the deviation 1.0; `1.1B` is 1100 million; fractions meant as percent have a
    note.
    """
    for key, number in read_published(folder / "published.csv").items():
        match = re.fullmatch(r"[+~]?(\d+(?:\.\d+)?)(?:±(\d+(?:\.\d+)?))?([%MB]?)", number.printed)
        if match is None:
            assert number.value is number.std is None, key
        else:
            fraction = number.unit == "percent" and number.note.startswith("printed as a fraction")
            scale = 100 if fraction else 1000 if match[3] == "B" else 1
            assert (match[3] in ("M", "B")) == (number.unit == "million"), key
            assert number.value == pytest.approx(scale * float(match[1]), rel=1e-12), key
            assert number.std == (float(match[2]) if match[2] else None), key


def test_every_claim_has_its_cells(folder):
    claims = load_catalogue(ROOT).papers[folder.name].claims
    assert len({claim.claim for claim in claims}) == len(claims)
    outcomes = judge_claims(claims, PaperCells(cells(folder), "claims.yaml"), True, "small")
    assert {outcome.verdict for outcome in outcomes} <= {"not run"}
    # A claim is about what can be measured: no side of it is a cell without a run.
    for claim in claims:
        for side in claim.list_cells():
            pattern = re.escape(side).replace(r"\*", "[^/]+")
            found = [cell for key, cell in cells(folder).items() if re.fullmatch(pattern, key)]
            assert {cell.status for cell in found} == {"not run"}, side


def test_every_display_has_its_caption(folder):
    named = {path.stem for path in (folder / "captions").glob("*.rst")}
    assert named == set(displays(folder))


@pytest.fixture
def paper_text(folder, paper_texts):
    if not read_published(folder / "published.csv"):
        pytest.skip("no paper, but displays of our own")
    return (paper_texts / f"{folder.name}.txt").read_text(encoding="utf-8")


def test_what_is_printed_stands_in_the_paper(folder, paper_text):
    text = " ".join(paper_text.split()).replace(r"\sim ", "~").replace(r"\%", "%")
    for key, number in read_published(folder / "published.csv").items():
        # What other publications print of their own models.
        assert number.source.startswith("elsewhere: ") or number.printed in text, key


def test_numbers_of_a_table_stand_in_a_line_with_the_name_of_their_row(folder, paper_text):
    lines = [re.sub(r"<[^>]*>|\*|[${}]|\\mathrm", "", line) for line in paper_text.splitlines()]
    for (display, row, *_), number in read_published(folder / "published.csv").items():
        if re.fullmatch(r"table\d+", display) and row not in NUMBERED.get(
            (folder.name, display), ()
        ):
            # "(previous)" is ours: the paper has two rows of that name. Indices are set apart in
            # the paper.
            name = re.sub(r" \(previous\)$| SRL$", "", row)
            found = [
                line
                for i, line in enumerate(lines)
                if number.printed in line and named(name, lines, i)
            ]
            assert found, (display, row, number.printed)


def printed_table(text, folder, display):
    """The rows of "Table N" in the paper's text, of cells between tabs, without headings and names."""
    lines = text.splitlines()
    caption = next(
        i
        for i, line in enumerate(lines)
        if line.startswith(f"Table {display.removeprefix('table')}:")
    )
    step = 1 if folder.name in UNDER_CAPTION else -1
    behind = dropwhile(lambda line: not line, lines[caption + step :: step])
    lines = list(takewhile(lambda line: "\t" in line, behind))[::step]
    key = folder.name, display
    return [line.split("\t")[NAMES.get(key, 1) :] for line in lines[HEADINGS.get(key, 1) :]]


def test_no_number_of_a_table_is_missing_nor_of_the_text_counted_by_hand(folder, paper_text):
    published = read_published(folder / "published.csv").items()
    counted = Counter(
        key[0] for key, number in published if not number.source.startswith("elsewhere: ")
    )
    expected = {}
    for display in {
        f"table{number}" for number in re.findall(r"^Table (\d+):", paper_text, re.MULTILINE)
    }:
        if display in displays(folder):
            numbers = [cell for row in printed_table(paper_text, folder, display) for cell in row]
            expected[display] = sum(cell.strip() not in ("", "-") for cell in numbers)
    assert counted == expected | IN_TEXT[folder.name]


def named(name, lines, i):
    """Whether line i starts with the name of a row, or with the version in a row "<model>
    <version>".

    The model is then named on the first line of its group, or on the second.
    """
    model, _, version = name.rpartition(" ")
    firsts = [line.split("\t")[0] for line in lines[: i + 1]]
    models = [next((first for first in reversed(firsts[:end]) if first), "") for end in (i + 1, i)]
    return lines[i].startswith(name) or (version in lines[i].split("\t") and model in models)
