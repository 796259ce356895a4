"""Units, values and columns of published.csv are checked before anything runs."""

from pathlib import Path

import pytest

from tests.config.copies import ROOT
from workflow_scripts.common.errors import UserError
from workflow_scripts.config.loading import load_catalogue, read_catalogue
from workflow_scripts.config.published_checks import (
    check_number,
    check_published_columns,
    read_printed_number,
)
from workflow_scripts.evaluation.published_numbers import (
    PUBLISHED_COLUMNS,
    Published,
    read_published,
)


@pytest.fixture(autouse=True)
def uncached():
    read_catalogue.cache_clear()
    yield
    read_catalogue.cache_clear()


def check(printed: str, value: float | None, unit: str, *, of_cell="percent", bounded=True) -> str:
    """Return what is said of a number of a cell."""
    number = Published(printed, value, None, None, unit, "Table 1", "", "published.csv:2")
    return "\n".join(check_number("cell 't/r/c/m'", number, of_cell, bounded))


@pytest.mark.parametrize(
    ("printed", "value", "unit"),
    [
        ("81%", 81, "percent"),
        ("56.31 ± 2", 56.31, "percent"),
        ("2.5±2.7", 2.5, "percent"),
        ("47.36 (2.1)†", 47.36, "percent"),
        ("+3.61%", 3.61, "points"),
        ("−3.61", -3.61, "points"),
        ("~1%", 1, "points"),
        ("0.8858", 88.58, "percent"),  # a fraction
        ("0.6", 0.6, "percent"),
        ("85M", 85, "million"),
        ("1.1B", 1100, "million"),
        ("1.5K", 1500, "examples"),
        ("1,231", 1231, "examples"),
        ("1231%", 1231, "examples"),
        (".0164", 0.0164, "ratio"),
        ("< 5%", None, "percent"),
        ("< 5%", 3, "percent"),  # a bound: not compared
        ("GELU", None, "name"),
    ],
)
def test_a_value_that_is_printed_has_no_problem(printed, value, unit):
    assert check(printed, value, unit, of_cell=unit) == ""


@pytest.mark.parametrize(
    ("printed", "value", "advice"),
    [
        ("81%", 0.81, "value is 0.81, but '81%' is printed; write 81"),
        ("81%", 8100, "value is 8100, but '81%' is printed; write 81"),
        ("56.31 ± 2", 2, "value is 2, but '56.31 ± 2' is printed; write 56.31"),
        ("42.36", 4236, "value is 4236, but '42.36' is printed; write 42.36"),
    ],
)
def test_a_value_that_is_not_printed_is_named(printed, value, advice):
    assert check(printed, value, "percent") == f"published.csv:2: {advice}"


def test_millions_are_counted():
    message = check("1.1B", 1.1, "million", of_cell="million")
    assert message == "published.csv:2: value is 1.1, but '1.1B' is printed; write 1100"


def test_another_unit_than_that_of_the_cell_is_named():
    assert check("0.81", 0.81, "fraction") == (
        "published.csv:2: unit is 'fraction', but cell 't/r/c/m' is in percent; "
        "write percent, and the value in it"
    )
    assert check("0.81", 0.81, "fraction", of_cell=None) == ""


def test_a_percentage_of_a_whole_is_at_most_100():
    said = "published.csv:2: value is 8100, which is no percentage; correct it, or for a gain over "
    assert check("eighty-one", 8100, "percent").startswith(said)
    assert check("8100%", 8100, "percent").startswith(said)
    assert check("8100%", 8100, "percent", bounded=False) == ""
    assert check("8100", 8100, "examples", of_cell="examples") == ""


def test_every_number_of_the_project_is_read():
    """Of its printed texts only bounds and words have none."""
    unread = set()
    for file in ROOT.glob("papers/*/published.csv"):
        for number in read_published(file).values():
            if number.value is not None and read_printed_number(number.printed) is None:
                unread.add(number.printed)
    assert unread == set()


def test_wrong_numbers_are_named_with_their_line(copy: Path):
    file = copy / "papers/lrf/published.csv"
    text = file.read_text()
    assert ",20.0%,20.0,percent," in text and ",50.3%,50.3,percent," in text
    text = text.replace(",20.0%,20.0,percent,", ",20.0%,20.0,fraction,", 1)
    file.write_text(text.replace(",50.3%,50.3,percent,", ",50.3%,0.503,percent,", 1))
    with pytest.raises(UserError) as raised:
        load_catalogue(copy)
    first, second = str(raised.value).splitlines()
    assert first.startswith(f"{file}:2: unit is 'fraction', but cell 'table-cognition/LRF/CTER ")
    assert second == f"{file}:3: value is 0.503, but '50.3%' is printed; write 50.3"


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (PUBLISHED_COLUMNS, None),
        (
            PUBLISHED_COLUMNS[:7] + PUBLISHED_COLUMNS[8:],
            "the column 'std' is missing; add it after 'unit' to every line",
        ),
        (PUBLISHED_COLUMNS[1:], "the column 'display' is missing; add it to every line"),
        (
            [name.replace("printed", "printd") for name in PUBLISHED_COLUMNS],
            "unknown column 'printd'; did you mean 'printed'?",
        ),
        ([*PUBLISHED_COLUMNS, "values"], "unknown column 'values'; did you mean 'value'?"),
    ],
)
def test_a_wrong_column_is_named(tmp_path: Path, columns, message):
    file = tmp_path / "published.csv"
    file.write_text(",".join(columns) + "\n", encoding="utf-8-sig")
    assert list(check_published_columns(file)) == (
        [] if message is None else [f"{file}:1: {message}"]
    )


def test_a_missing_column_is_the_only_message(copy: Path):
    file = copy / "papers/recompose/published.csv"
    file.write_text(file.read_text().replace(",std", ""))
    with pytest.raises(UserError) as raised:
        load_catalogue(copy)
    missing = "the column 'std' is missing; add it after 'unit' to every line"
    assert str(raised.value) == f"{file}:1: {missing}"
