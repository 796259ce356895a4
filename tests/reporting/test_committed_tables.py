"""The committed tables, claims and sides say the same of the same scores."""

from collections import defaultdict
from statistics import fmean

import pytest

from tests.analyses.small_runs import ROOT
from tests.reporting.reference import (
    REFERENCE,
    make_committed_tables,
    read_committed_table,
    rows_of,
)
from workflow_scripts.config.display_schema import SELECTORS
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.reporting.committed.committed_tables import OURS, has_number
from workflow_scripts.reporting.tables.parsed_markdown import format_parsed_table

COMMITTED = sorted(f"{file.parent.name}/{file.stem}" for file in REFERENCE.glob("tables/*/*.csv"))
# Tables of analyses whose scores are not committed: sizes of data and models, examples, and means
# of several tasks. ./reproduce makes them.
NOT_FROM_SCORES = {
    "carma/table2",
    "carma/table3",
    "cat/table1",
    "cat/table5",
    "cat/table6",
    "cat/text-gains",
}


def read_grid(markdown: str) -> list[str]:
    """The lines of a table in Markdown, without the marks of its tests over examples."""
    return [
        line
        for line in markdown.replace("†", "").replace("‡", "").splitlines()
        if line.startswith("|")
    ]


def test_every_table_with_a_number_is_there_and_follows_from_the_scores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where results are added: `python -m tests.reporting.reference` writes those that differ."""
    monkeypatch.chdir(ROOT)
    found, seen, told = {}, set(), 0
    for table in make_committed_tables():
        name = f"{table.paper}/{table.name}"
        if table.unknown:
            seen.add(name)
        if table.has_numbers:
            found |= {name: table.differing} if table.differing else {}
            told += sum(map(has_number, table.expected.values()))
            if not table.unknown and name in COMMITTED:
                assert read_grid((REFERENCE / f"tables/{name}.md").read_text()) == read_grid(
                    table.made.files["md"]
                ), name
            assert format_parsed_table(name, table.made.files["md"]) == table.made.files["tex"], (
                name
            )
    assert found == {}
    assert seen == NOT_FROM_SCORES
    assert told > 1000


def test_the_latex_of_every_committed_table_is_that_of_its_markdown() -> None:
    for name in COMMITTED:
        text = (REFERENCE / f"tables/{name}.tex").read_text()
        assert format_parsed_table(name, (REFERENCE / f"tables/{name}.md").read_text()) == text


def shown_cells() -> dict[tuple, list[tuple[str, dict[str, str]]]]:
    """The committed cells of runs by the score that they show: (table and place, row of the CSV)."""
    catalogue, found = load_catalogue(ROOT), defaultdict(list)
    for name in COMMITTED:
        paper, display = name.split("/")
        rows = read_committed_table(name)
        for cell in catalogue.papers[paper].displays[display].cells:
            place = (cell.row, cell.column, cell.metric)
            if place not in rows or cell.method is None or cell.variant_name is None:
                continue
            keys = (
                "task",
                "method",
                "variant_name",
                "analysis",
                "metric",
                "over",
                "relative",
                *SELECTORS,
            )
            which = tuple(getattr(cell, key) for key in keys)
            found[which].append((f"{name}/{'/'.join(place)}", rows[place]))
    return found


def test_cells_of_one_score_are_equal_in_all_tables_of_all_papers() -> None:
    several = {which: cells for which, cells in shown_cells().items() if len(cells) > 1}
    differing = [
        [name for name, _ in cells]
        for cells in several.values()
        if len({tuple(row[key] for key in OURS) for _, row in cells}) > 1
    ]
    assert not differing
    assert len(several) > 100
    # The score of SRL on CoGnition is in tables of two papers.
    names = [{name.split("/")[0] for name, _ in cells} for cells in several.values()]
    assert {"lrf", "sq_transformer"} in names


def test_claims_compare_the_numbers_of_their_tables() -> None:
    values = defaultdict(list)
    for row in rows_of("claim_sides.csv"):
        if row["value"] and row["seed"]:
            values[row["paper"], row["claim"], row["side"], row["cell"]].append(float(row["value"]))
    checked = 0
    for (paper, claim, _, key), seeds in values.items():
        display, *place = key.split("/")
        row = read_committed_table(f"{paper}/{display}")[tuple(place)]
        assert (row["status"], int(row["n_seeds"])) == ("measured", len(seeds)), (claim, key)
        assert float(row["reproduced"]) == pytest.approx(fmean(seeds), rel=1e-5, abs=1e-5), (
            claim,
            key,
        )
        checked += 1
    assert checked > 300


def test_what_notes_call_not_run_has_no_number() -> None:
    """Columns of tables that the lists of what is `not run` in NOTES name."""
    for name, part in (
        ("table1", "COGS"),
        ("text-1", "COGS"),
        ("table4", "COGS"),
        ("table-protocol", "outside"),
    ):
        cells = [
            row
            for (_, column, _), row in read_committed_table(f"sq_transformer/{name}").items()
            if part in column
        ]
        assert cells and not any(map(has_number, cells)), name
    cells = [
        row
        for (_, column, _), row in read_committed_table("lrf/table-layers").items()
        if column.startswith(("COGS", "JUMP"))
    ]
    assert cells and not any(map(has_number, cells))


def test_text_1_and_table_1_have_the_variant_of_the_primary_claims() -> None:
    """README gives verdicts on SAL with H(Z) changed, while the official SAL is not done on these
    tasks.
    """
    (verdict,) = (row for row in rows_of("claims.csv") if row["claim"] == "sal-success-aroundright")
    assert "H(Z) changed" in verdict["statement"] and verdict["verdict"] == "not reproduced"
    for name, jump, around in (
        ("table1", "JUMP", "AROUNDR"),
        ("text-1", "ADDJUMP x2", "AROUNDRIGHT"),
    ):
        cells = read_committed_table(f"sq_transformer/{name}")
        assert cells["SQ-Transformer", around, "exact_match"]["status"] == "not run"
        for column, seeds in ((jump, "8"), (around, "5")):
            row = cells["SQ-Transformer, H(Z) changed", column, "exact_match"]
            assert (row["status"], row["n_seeds"]) == ("measured", seeds)
