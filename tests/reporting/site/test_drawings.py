"""Axes, and the words next to drawings."""

import csv
import shutil
from dataclasses import replace
from itertools import pairwise

import pytest

from tests.reporting.site.conftest import RESULTS, ROOT
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.reporting.site.drawings import (
    choose_curve_look,
    describe_numbers,
    draw_grid,
    draw_progress,
    make_axis,
)
from workflow_scripts.reporting.site.measured_claims import read_measured_claims


@pytest.mark.parametrize("anchor", [0.0, None])
@pytest.mark.parametrize("values", [[], [None, None]])
def test_an_axis_of_no_values_is_around_zero(values, anchor):
    axis = make_axis(values, 10, 110, anchor=anchor)
    assert (axis.low, axis.high) == (-1, 1)
    assert axis.place(0) == 60
    assert axis.choose_ticks()


def test_an_axis_has_room_at_its_ends_and_zero_unless_it_is_left_out():
    axis = make_axis([20, None, 10], 0, 100)
    assert (axis.low, axis.high) == pytest.approx((-1.6, 21.6))
    axis = make_axis([20, None, 10], 0, 100, anchor=None)
    assert (axis.low, axis.high) == pytest.approx((9.2, 20.8))
    axis = make_axis([-50, *range(1, 9), 50], 0, 100, cut=0.1, anchor=None)
    assert (axis.low, axis.high) == pytest.approx((1 - 0.56, 8 + 0.56))


def test_the_line_of_no_effect_is_that_of_equal_sides():
    """A chance of 0.5 is that of equal sides, and none of the round numbers of its axis."""
    axis = make_axis([0.7, 0.95], 0, 100, anchor=0.5)
    assert axis.has(0.5)
    assert not axis.has(0)
    grid = draw_grid(axis, 0, 10, "chance", anchor=0.5)
    x = axis.place(0.5)
    assert grid.count('class="zero"') == 1
    assert f'<path d="M{x:g} 0L{x:g} 10" class="zero"/>' in grid
    assert 'class="zero"' not in draw_grid(axis, 0, 10, "percent", anchor=None)


def test_the_planned_seeds_are_said_in_the_same_words_everywhere():
    claims = read_measured_claims(load_catalogue(ROOT), RESULTS)
    claim = next(claim for claim in claims if claim.row.is_primary)
    claim = replace(claim, row=replace(claim.row, effect=None, n_seeds=1, n_planned=9))
    drawing = draw_progress(0, 0, claim)
    assert drawing.count("<circle") == 9
    assert drawing.count("ring done") == 1
    assert ">1 of 9 planned seeds</text>" in drawing
    assert "ours 1 of 9 planned seeds; " in describe_numbers(claim)


def test_a_cell_whose_key_is_none_of_a_table_is_shown_by_its_whole_key(tmp_path):
    for name in ("claims.csv", "claim_sides.csv", "provenance.json", "curves.csv"):
        shutil.copy(RESULTS / name, tmp_path)
    with open(tmp_path / "claim_sides.csv", newline="") as stream:
        reader = csv.DictReader(stream)
        rows = list(reader)
    changed = rows[0]
    with open(tmp_path / "claim_sides.csv", "a", newline="") as stream:
        writer = csv.DictWriter(stream, reader.fieldnames)
        writer.writerow(changed | {"cell": "a table/a row", "seed": "1"})
    for claim in read_measured_claims(load_catalogue(ROOT), tmp_path):
        if (claim.row.paper, claim.row.claim) == (changed["paper"], changed["claim"]):
            labels = {cell.key: cell.label for cell in claim.cells}
            assert labels["a table/a row"] == "a table/a row"
            assert all(
                ", " in label or "/" not in label
                for label in labels.values()
                if label != "a table/a row"
            )
            return
    raise AssertionError("the claim is missing")


def test_curves_differ_in_colour_and_line():
    looks = [choose_curve_look(number).split() for number in range(12)]
    assert len({tuple(look) for look in looks}) == 12
    for first, second in pairwise(looks):
        assert first[1] != second[1] and first[2] != second[2]
