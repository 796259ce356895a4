"""Rows of claims.csv and claim_sides.csv: read and written again they are the same bytes."""

from pathlib import Path

import pytest

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import format_csv
from workflow_scripts.reporting.claims.claim_rows import (
    CLAIM_COLUMNS,
    SIDE_COLUMNS,
    ClaimRow,
    choose_decimals,
    format_claim_rows,
    format_side_rows,
    read_claim_rows,
    read_side_rows,
)

REFERENCE = Path(__file__).parents[3] / "results/reference/small"


def row(unit: str, low: float | None, high: float | None) -> ClaimRow:
    names = {
        "paper": "cat",
        "claim": "first",
        "kind": "paper",
        "role": "exploratory",
        "verdict": "inconclusive",
    }
    return ClaimRow(**names, unit=unit, ci_low=low, ci_high=high)


def test_the_committed_rows_are_written_as_they_were_read():
    claims, sides = REFERENCE / "claims.csv", REFERENCE / "claim_sides.csv"
    assert format_claim_rows(read_claim_rows(claims)) == claims.read_text(encoding="utf-8")
    assert format_side_rows(read_side_rows(sides)) == sides.read_text(encoding="utf-8")


def test_a_seed_keeps_all_its_digits_and_a_number_has_six(tmp_path):
    file = tmp_path / "claim_sides.csv"
    names = {"paper": "cat", "claim": "first", "side": "left", "cell": "a/b/c/d"}
    file.write_text(
        format_csv(
            SIDE_COLUMNS, [names | {"seed": "20240609", "value": "0.123456", "published": ""}]
        )
    )
    (side,) = read_side_rows(file)
    assert (side.seed, side.value, side.published) == (20240609, 0.123456, None)
    assert format_side_rows([side]) == file.read_text()


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ("n_seeds", "5.5"),
        ("n_seeds", "1_0"),
        ("effect", "many"),
        ("effect", "1_0"),
        ("ci_low", "nan"),
    ],
)
def test_a_cell_that_is_no_number_is_named_with_its_line(tmp_path, column, text):
    file = tmp_path / "claims.csv"
    file.write_text(
        format_csv(CLAIM_COLUMNS, [{"verdict": "not run"}, {"verdict": "not run", column: text}])
    )
    with pytest.raises(UserError, match=f"line 3: {column} is '{text}', not a number"):
        read_claim_rows(file)


def test_a_narrow_interval_has_two_digits_of_its_width():
    points = [(-1.3, 4.1), (-0.0131, 0.0945), (2.71, 2.71), (None, None)]
    assert [choose_decimals(row("points", *interval)) for interval in points] == [1, 2, 1, 1]
    assert (choose_decimals(row("nats", 0.4, 0.9)), choose_decimals(row("nats", 0.401, 0.442))) == (
        2,
        3,
    )
    assert choose_decimals(row("ratio", 0.1, 0.2)) == 4
