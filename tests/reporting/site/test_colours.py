"""Contrasts of text and of verdicts, computed from the style sheets as WCAG 2 defines them."""

import re
from itertools import combinations
from pathlib import Path

import pytest

from workflow_scripts.reporting.site import run_page
from workflow_scripts.reporting.tables.html_page import PAGE

TEXT = 4.5  # the least contrast of text, level AA
GRAPHICS = 3  # that of parts of a drawing
THEMES = ("light", "dark")
DECIDED = ("reproduced", "not-reproduced", "inconclusive", "no-verdict")
ON_FILLED = {"no-verdict": "ink", "not-run": "ink"}  # the text of a tally; all others have --on


def read_colours(theme: str) -> dict[str, str]:
    """The colours of the drawings and of the site, by name."""
    css = (Path(run_page.__file__).parent / "static/drawings.css").read_text()
    head = "html" if theme == "light" else 'html[data-theme="dark"]'
    (block,) = re.findall(rf"^{re.escape(head)} {{([^}}]*)}}", css, re.MULTILINE)
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})\b", block))


def compute_luminance(colour: str) -> float:
    """The relative luminance of `#rrggbb`, 0 to 1."""
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def compute_contrast(first: str, second: str) -> float:
    """The ratio of two colours, 1 to 21."""
    low, high = sorted(map(compute_luminance, (first, second)))
    return (high + 0.05) / (low + 0.05)


def test_contrasts_are_those_of_the_definition():
    assert compute_contrast("#000000", "#ffffff") == pytest.approx(21)
    assert compute_contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.005)


@pytest.mark.parametrize("theme", THEMES)
def test_the_text_on_a_verdict_can_be_read(theme):
    colours = read_colours(theme)
    css = (Path(run_page.__file__).parent / "static/site.css").read_text()
    assert ".tally :is(.no-verdict, .not-run) { color: var(--ink) !important; }" in css
    for verdict in (*DECIDED, "planned", "not-run"):
        text = colours[ON_FILLED.get(verdict, "on")]
        assert compute_contrast(text, colours[verdict]) >= TEXT, verdict
    if theme == "light":
        assert colours["on"] == "#ffffff"


@pytest.mark.parametrize("theme", THEMES)
def test_verdicts_differ_without_their_hue(theme):
    colours = read_colours(theme)
    for first, second in combinations(DECIDED, 2):
        assert compute_contrast(colours[first], colours[second]) >= 1.25, (first, second)
    assert compute_contrast(colours["reproduced"], colours["not-reproduced"]) >= 1.5
    assert compute_contrast(colours["inconclusive"], colours["no-verdict"]) >= 1.5


@pytest.mark.parametrize("theme", THEMES)
def test_marks_and_words_of_verdicts_stand_out_from_the_page(theme):
    colours = read_colours(theme)
    for verdict in (*DECIDED, "planned"):
        # The word of a claim without a verdict has the colour --faint.
        least = GRAPHICS if verdict == "no-verdict" else TEXT
        assert compute_contrast(colours[verdict], colours["ground"]) >= least, verdict
    for side in ("left", "right"):
        assert compute_contrast(colours[side], colours["ground"]) >= GRAPHICS
    assert compute_contrast(colours["faint"], colours["ground"]) >= TEXT


def test_the_text_of_a_table_of_the_report_can_be_read():
    """It has one theme, on white; heads of groups have a ground of their own."""
    (body,) = re.findall(r"^body {([^}]*)}", PAGE, re.MULTILINE)
    assert "background: #fff;" in body
    assert "prefers-color-scheme" not in PAGE
    colours = re.findall(r"[ {;]color: (#[0-9a-f]{6})", PAGE)
    assert len(colours) >= 5
    (group,) = re.findall(r"\.group th {[^}]*background: (#[0-9a-f]{6})", PAGE)
    for colour in colours:
        assert compute_contrast(colour, "#ffffff") >= TEXT, colour
        assert compute_contrast(colour, group) >= TEXT, colour
