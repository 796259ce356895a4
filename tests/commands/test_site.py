"""What needs no Sphinx: the pictures, the numbers in the text, and the errors. tests/reporting/site
builds the site.
"""

from collections import defaultdict
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from workflow_scripts.__main__ import main
from workflow_scripts.commands import site
from workflow_scripts.reporting.claims.claim_rows import ClaimRow, format_effect

ROOT = Path(__file__).parents[2]


def test_the_pictures_are_those_of_the_committed_results(tmp_path):
    assert main(["site", "--pictures", str(tmp_path)]) == 0
    for theme, ground in (("light", "#ffffff"), ("dark", "#0d1117")):
        name = f"overview-{theme}.svg"
        text = (tmp_path / name).read_text()
        assert (ROOT / "docs/pictures" / name).read_text() == text, (
            "run `site --pictures docs/pictures`"
        )
        ElementTree.fromstring(text)
        assert len(text) < 30_000 and ("#0d1117" in text) == (ground == "#0d1117")
        assert "CAT_comp is closer to people on BiRD than BERT" in text


def test_no_lines_of_the_pictures_overlap():
    picture = ElementTree.parse(ROOT / "docs/pictures/overview-light.svg").getroot()
    heights = defaultdict(list)
    for text in picture.iter("{http://www.w3.org/2000/svg}text"):
        heights[text.get("x")].append(float(text.get("y")))
    assert len(heights) == 3  # the columns: statements, verdicts, published effects
    for column in heights.values():
        assert all(below - above >= 13 for above, below in pairwise(sorted(column)))
    # README shows it about 840 pixels wide, where it must be at most 600 high.
    _, _, width, height = map(float, picture.get("viewBox").split())
    assert height * 840 / width <= 600


def test_without_sphinx_one_line_says_what_to_install(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(
        site.importlib.util, "find_spec", lambda name: None if name == "sphinx" else find_spec(name)
    )
    assert main(["site", "--out", str(tmp_path / "site")]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "envs/docs.lock" in said and not (tmp_path / "site").exists()


@pytest.mark.parametrize("option", [[], ["--pictures", "pictures"]])
def test_results_of_no_scale_or_without_runs_are_refused(monkeypatch, capsys, tmp_path, option):
    monkeypatch.setattr(site.importlib.util, "find_spec", lambda name: True)
    for folder, said in ((tmp_path, "no scale"), (tmp_path / "full", "no scored run")):
        assert (
            main(["site", "--results", str(folder), "--out", str(tmp_path / "site"), *option]) == 1
        )
        assert said in capsys.readouterr().err


def claim_row(**values) -> ClaimRow:
    names = {
        "paper": "cat",
        "claim": "first",
        "kind": "paper",
        "role": "exploratory",
        "verdict": "inconclusive",
    }
    return ClaimRow(**names, unit="points", quantile=0.975, **values)


@pytest.mark.parametrize(
    ("low", "high", "margin", "smallest", "shown"),
    [
        (0.04, 3, 0, None, "0.04 to 3.00"),
        (-1, 4.09, 0, 4.1, "−1.00 to 4.09"),
        (-1.96, 1, 2, None, "−2.0 to 1.0"),
        (-1, 3.96, 0, 4.1, "−1.0 to 4.0"),
        (1.04, 3, -1, None, "1.0 to 3.0"),
    ],
)
def test_an_end_of_an_interval_is_not_rounded_into_another_verdict(
    low, high, margin, smallest, shown
):
    row = claim_row(
        effect=1,
        ci_low=low,
        ci_high=high,
        at_least=margin,
        smallest_effect=smallest,
        relation="greater",
    )
    assert format_effect(row).endswith(f" points (95%: {shown})")


def test_a_margin_of_no_gain_is_below_zero():
    row = claim_row(effect=-1, ci_low=-1.96, ci_high=0, at_least=2, relation="no_gain")
    assert row.margin == -2 and format_effect(row).endswith("−1.96 to 0.00)")


def test_the_page_of_the_commands_has_every_command_and_its_options():
    text = site.describe_commands()
    assert all(f"\n## {name}\n" in text for name in site.COMMANDS)
    assert "--pictures DIR" in text and "--scale SCALE" in text
