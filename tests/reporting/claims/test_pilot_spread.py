"""Spread of pilots against scipy and numpy, without any mean."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from workflow_scripts.__main__ import main
from workflow_scripts.common.errors import UserError
from workflow_scripts.reporting.claims.pilot_spread import measure_spreads

ROOT = Path(__file__).parents[3]
FILE = ROOT / "papers/lrf/pilots.csv"


def rows(**scores: list[str]) -> list[dict[str, str]]:
    return [
        {"method": method, "variant": "default", "seed": str(seed), "rate": value}
        for method, values in scores.items()
        for seed, value in enumerate(values)
    ]


@pytest.mark.parametrize("log_odds", [False, True])
def test_groups_and_all_of_them_pooled(log_odds):
    scores = {"a": [12.0, 15.5, 11.25], "b": [60.0, 71.0], "c": [50.0]}
    given = rows(**{method: list(map(str, values)) for method, values in scores.items()})
    found = measure_spreads(given, "rate", log_odds, "here")
    sides = [np.array(scores[method]) / 100 for method in ("a", "b")]  # c has one seed
    sides = [np.log(side / (1 - side)) if log_odds else 100 * side for side in sides]
    assert [(one.name, one.freedom) for one in found] == [
        ("a, default", 2),
        ("b, default", 1),
        ("pooled", 3),
    ]
    variances = [side.var(ddof=1) for side in sides]
    pooled = (2 * variances[0] + variances[1]) / 3
    assert [one.sd for one in found] == pytest.approx(np.sqrt([*variances, pooled]))
    limits = [one.sd * np.sqrt(one.freedom / stats.chi2.ppf(0.2, one.freedom)) for one in found]
    assert [one.upper for one in found] == pytest.approx(limits)


def test_one_time_in_five_the_upper_limit_is_below_the_truth():
    generator = np.random.default_rng(0)
    above = 0
    for _ in range(2_000):
        given = rows(**{name: list(map(str, generator.normal(50, 2, 3))) for name in ("a", "b")})
        above += measure_spreads(given, "rate", False, "here")[-1].upper > 2
    assert above / 2_000 == pytest.approx(0.8, abs=0.03)


def test_the_command_prints_the_spread_of_the_plan_and_no_mean(capsys: pytest.CaptureFixture[str]):
    assert main(["plan", "--spread", str(FILE), "cter_instance"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"^pooled +1\.296 +5 +1\.894$", said, re.MULTILINE)
    with open(FILE, newline="") as stream:
        table = list(csv.DictReader(stream))
    for variant in ("default", "matched", "plain"):
        values = [
            float(row["cter_instance"])
            for row in table
            if (row["method"], row["variant"]) == ("lrf", variant)
        ]
        assert f"{np.mean(values):.4g}" not in said and str(values[0]) not in said
    assert main(["plan", "--spread", str(FILE), "cter_instance", "--log-odds"]) == 0
    assert re.search(r"^pooled +0\.148", capsys.readouterr().out, re.MULTILINE)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (rows(a=["1", "much"]), "'rate' of seed 1 is 'much'"),
        (rows(a=["1", "nan"]), "'rate' of seed 1 is 'nan'"),
        (rows(a=["1", "100"]), "'rate' of seed 1 has no log odds"),
        (rows(a=["1"], b=["1", ""]), "no setting has two seeds"),
        (rows(a=["1"]) * 2, "two rows of a, default with seed 0"),
    ],
)
def test_scores_without_a_spread_are_refused(given, message):
    with pytest.raises(UserError, match=message):
        measure_spreads(given, "rate", True, "here")


def test_a_file_without_pilots_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    assert main(["plan", "--spread", str(tmp_path / "none.csv"), "rate"]) == 1
    assert "none.csv: no pilots; name a file" in capsys.readouterr().err
    assert main(["plan", "--spread", str(FILE), "rate"]) == 1
    metrics = "cter_instance, cter_aggregate, bleu_zh, bleu_zh_in_distribution"
    message = f"{FILE}: has no column rate; name one of its metrics: {metrics}\n"
    assert capsys.readouterr().err == f"error: {message}"


def test_a_file_without_seeds_names_its_columns(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    file = tmp_path / "pilots.csv"
    file.write_text("method,rate\nmine,1\n")
    assert main(["plan", "--spread", str(file), "rate"]) == 1
    assert "has no column seed, but method, rate; " in capsys.readouterr().err
