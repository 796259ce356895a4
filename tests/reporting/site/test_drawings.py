"""Axes, and the words next to drawings."""

import csv
import re
import shutil
from dataclasses import replace
from html import escape
from itertools import pairwise

import pytest
import yaml

from tests.reporting.site.conftest import RESULTS, ROOT
from workflow_scripts.common.run_names import VariantKey
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.reporting.site.drawings import (
    CURVE_LOOKS,
    CURVE_UNITS,
    Axis,
    choose_curve_look,
    describe_numbers,
    draw_curves,
    draw_grid,
    draw_progress,
    draw_seeds,
    draw_strip,
    format_tick,
    make_axis,
    name_cell_metric,
    name_logged_value,
    split_variants,
)
from workflow_scripts.reporting.site.measured_claims import ComparedCell, read_measured_claims
from workflow_scripts.reporting.site.page_sources import (
    format_short,
    make_strip_axes,
    start_with_capital,
)


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


def test_each_variant_has_its_own_look_in_its_drawing():
    """carma/cv-six has 24 variants, 12 of each of two tasks: a drawing for each."""
    claims = read_measured_claims(load_catalogue(ROOT), RESULTS)
    for claim in claims:
        if not claim.curves:
            continue
        drawings = re.findall(r"<svg.*?</svg>", draw_curves(claim))
        n_variants = 0
        for drawing in drawings:
            looks = re.findall(r'<path d="[^"]*" class="(curve [\w -]+)"/>', drawing)
            assert len(set(looks)) == len(looks) <= CURVE_LOOKS
            n_variants += len(looks)
        runs = {run for of_value in claim.curves.values() for run in of_value}
        assert n_variants == len({run.variant_key for run in runs})
        assert len(drawings) == (2 if claim.slug == "carma-cv-six" else 1)
        n_lines = sum(len(of_value) for of_value in claim.curves.values())
        assert sum(drawing.count("<polyline") for drawing in drawings) == n_lines


def test_more_variants_of_a_task_than_looks_are_split_too():
    variants = [VariantKey("scan", "lrf", f"v{number}") for number in range(CURVE_LOOKS + 1)]
    assert split_variants(variants[:-1]) == [variants[:-1]]
    assert split_variants(variants) == [variants[:-1], variants[-1:]]
    other = VariantKey("cogs", "lrf", "v0")
    assert split_variants([variants[0], other, *variants[1:-1]]) == [variants[:-1], [other]]


def find_claim(**values):
    """A claim with an effect, with these values in its row."""
    claims = read_measured_claims(load_catalogue(ROOT), RESULTS)
    claim = next(claim for claim in claims if claim.row.effect is not None)
    return replace(claim, row=replace(claim.row, **values))


@pytest.mark.parametrize("at_least", [25.0, 48.0])
def test_a_claim_that_begins_beyond_the_shared_axis_is_drawn_on_its_own(at_least):
    """Below and above such a margin are opposite verdicts, and other drawings."""
    shared = Axis(-5, 12, 6, 144)
    drawn = []
    for effect in (at_least - 8, at_least + 8):
        ends = {"effect": effect, "ci_low": effect - 4, "ci_high": effect + 4}
        claim = find_claim(relation="greater", at_least=at_least, published_effect=None, **ends)
        strip = draw_strip(claim, shared)
        (margin,) = re.findall(r'<path d="M([\d.]+) [^"]*" class="margin"/>', strip)
        (dot,) = re.findall(r'<circle cx="([\d.]+)"', strip)
        assert (float(dot) > float(margin)) == (effect > at_least)
        # All marks are at their values on one axis, from no effect to the margin and beyond.
        (null,) = re.findall(r'<path d="M([\d.]+) [^"]*" class="grid"/>', strip)
        share = (float(dot) - float(null)) / (float(margin) - float(null))
        assert share == pytest.approx(effect / at_least, abs=0.01)
        numbers = re.findall(r'<text x="([\d.]+)"[^>]*>([^<]+)</text>', strip)
        assert numbers == [(null, "0"), (margin, f"{at_least:g}")]
        drawn.append(re.sub("<title>.*?</title>", "", strip))
    assert drawn[0] != drawn[1]


def test_a_margin_of_no_gain_beyond_the_shared_axis_is_on_the_left_of_no_effect():
    row = {"relation": "no_gain", "at_least": 25.0, "published_effect": -7.3}
    strip = draw_strip(find_claim(effect=-30, ci_low=-33, ci_high=-27, **row), Axis(-5, 12, 6, 144))
    (margin,) = re.findall(r'<path d="M([\d.]+) [^"]*" class="margin"/>', strip)
    (dot,) = re.findall(r'<circle cx="([\d.]+)"', strip)
    (published,) = re.findall(r'<path d="M([\d.]+) [^"]*" class="published"/>', strip)
    assert float(dot) < float(margin) < float(published)
    assert ">−25</text>" in strip


def test_a_margin_on_the_shared_axis_is_drawn_there_without_numbers():
    claim = find_claim(relation="greater", at_least=5.0, effect=6, ci_low=4, ci_high=8)
    strip = draw_strip(claim, Axis(-5, 15, 0, 100))
    assert '<path d="M50 2L50 16" class="margin"/>' in strip
    assert "<text" not in strip


def test_no_claim_of_the_tables_is_drawn_beyond_its_axis():
    """At `small` five claims of SQ-Transformer begin beyond the axis of points."""
    claims = read_measured_claims(load_catalogue(ROOT), RESULTS)
    axes = make_strip_axes(claims)
    own = []
    for claim in claims:
        strip = draw_strip(claim, axes[claim.row.unit])
        if "<text" in strip:
            own.append(claim.slug)
            assert f">{format_tick(claim.row.margin)}</text>" in strip
        elif strip:
            assert axes[claim.row.unit].has(claim.row.margin)
    assert len(own) == 5
    assert all(slug.startswith("sq-transformer-") for slug in own)


def test_drawings_by_seed_and_curves_say_what_is_drawn_of_which_claim_in_which_unit():
    claims = read_measured_claims(load_catalogue(ROOT), RESULTS)
    by_slug = {claim.slug: claim for claim in claims}
    claim = by_slug["cat-comp-over-mix-bird"]
    drawing = draw_seeds(claim.cells, claim.row.statement)
    assert ">pearson, percent</text>" in drawing
    statement = escape(claim.row.statement)
    assert f"<title>{statement}: pearson, percent, by seed</title>" in drawing
    title, *panels = re.findall(r">([^<>]+)</t(?:itle|ext)>", draw_curves(claim))
    assert title.startswith(f"{statement}: learning curves of loss, ")
    assert title.endswith("valid matthews, percent on paws")
    assert "valid accuracy, percent" in panels
    assert all(cell.unit for claim in claims for cell in claim.cells)


def test_what_the_values_of_a_cell_are_is_said_with_gain_cap_and_unit():
    cell = ComparedCell("left", "table/row/column/exact_match", "row", unit="percent")
    assert name_cell_metric(cell) == "exact match, percent"
    gain = replace(cell, intervention="cap", is_gain=True, unit="points")
    assert name_cell_metric(gain) == "gain in exact match under CAP, points"
    assert name_cell_metric(replace(cell, unit="")) == "exact match"


def test_units_of_logged_values_are_those_of_the_metrics():
    entries = yaml.safe_load((ROOT / "catalogue/metrics.yaml").read_text())
    units = {metric: entry["unit"] for entry in entries for metric in entry["metrics"]}
    for metric in CURVE_UNITS.keys() & units.keys():
        assert CURVE_UNITS[metric] == units[metric], metric
    with open(RESULTS / "curves.csv", newline="") as stream:
        names = {line["name"] for line in csv.DictReader(stream)}
    assert names > {"loss", "valid_in_distribution_log_likelihood"}
    for name in names:
        assert ", " in name_logged_value(name), name
    assert name_logged_value("valid_in_distribution_exact_match") == (
        "valid in distribution exact match, percent"
    )
    assert name_logged_value("valid_other_score") == "valid other score"


@pytest.mark.parametrize(
    ("value", "digits", "sign", "text"),
    [
        (17824, 4, "", "17824"),
        (-17824.6, 4, "", "−17825"),
        (1234567, 4, "", "1234567"),
        (999.96, 4, "", "1000"),
        (12.3456, 4, "", "12.35"),
        (0.00012345678, 4, "", "0.0001235"),
        (11, 4, "", "11"),
        (0, 4, "", "0"),
        (1234.5, 3, "+", "+1234"),
        (-0.12849, 3, "+", "−0.128"),
    ],
)
def test_only_decimals_are_rounded(value, digits, sign, text):
    assert format_short(value, digits, sign) == text


def test_only_the_first_letter_of_a_text_becomes_a_capital():
    assert start_with_capital("the papers' models on GPUs") == "The papers' models on GPUs"
    assert start_with_capital("") == ""
