"""Odds ratios of compound errors against loops over seeds and compounds, and their cover on drawn
errors.
"""

import json
import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

from tests.analyses.small_runs import name_run
from workflow_scripts.analyses.options.seeds_and_compounds import Options
from workflow_scripts.analyses.seeds_and_compounds import (
    SideErrors,
    analyse,
    compare_over_seeds_and_compounds,
)
from workflow_scripts.common.errors import UserError

COMPOUNDS = ["the red car", "the dirty dog", "the quiet girl"]
RIGHT = {
    "the red car": "这个红色的汽车",
    "the dirty dog": "这个肮脏的狗",
    "the quiet girl": "这个安静的女孩",
}
LEXICON = {
    "the": ["这个"],
    "red": ["红色的"],
    "car": ["汽车"],
    "dirty": ["肮脏的"],
    "dog": ["狗"],
    "quiet": ["安静的"],
    "girl": ["女孩"],
}
SENTENCES = 5

OPTIONS = Options(pairs={"lrf over plain": ["plain", "lrf"]})


def write_run(folder, series, seed, wrong):
    """A run with this number of wrong sentences, of five, for each compound."""
    run = name_run(folder, "cognition-compounds", "lrf", series, seed, series=series)
    lines = [(name, number < wrong[name]) for name in COMPOUNDS for number in range(SENTENCES)]
    texts = ["" if is_wrong else RIGHT[name] for name, is_wrong in lines]
    columns = {
        "split": ["cg_test"] * len(lines),
        "row": list(range(len(lines))),
        "prediction": texts,
    }
    (run.folder / "eval").mkdir(parents=True)
    # Predictions need not be in the order of the data, and other splits have their own.
    table = pa.table(columns).take(list(reversed(range(len(lines)))))
    other = pa.table({"split": ["test"], "row": [0], "prediction": ["你好"]})
    pq.write_table(pa.concat_tables([table, other]), run.folder / "eval/predictions.parquet")
    compounds = [name for name, _ in lines]
    pq.write_table(
        pa.table({"compound": compounds, "source": compounds}), run.data / "cg_test.parquet"
    )
    (run.data / "lexicon.json").write_text(json.dumps(LEXICON, ensure_ascii=False))
    return run


def log_odds(errors: list[int]) -> float:
    rate = sum(errors) / (SENTENCES * len(errors))
    return math.log(rate / (1 - rate))


WORSE = [[3, 2, 4], [4, 1, 3], [2, 2, 5]]
BETTER = [[1, 2, 2], [2, 1, 1], [1, 1, 3]]


def test_effect_and_intervals_by_hand(tmp_path):
    runs = [
        write_run(tmp_path, series, seed, dict(zip(COMPOUNDS, errors, strict=True)))
        for series, seeds in (("plain", WORSE), ("lrf", BETTER))
        for seed, errors in enumerate(seeds)
    ]
    found = {row.metric: row for row in analyse(runs, OPTIONS).scores}
    sides = [[log_odds(errors) for errors in seeds] for seeds in (WORSE, BETTER)]
    assert found["log_odds"].value == pytest.approx(np.mean(sides[0]) - np.mean(sides[1]))
    assert (found["log_odds"].n, found["log_odds"].item_set) == (3, "lrf over plain")
    oracle = stats.ttest_ind(*sides, equal_var=False)
    low, high = oracle.confidence_interval(0.95)
    ends = [found[f"log_odds_{end}_seeds"].value for end in ("low", "high")]
    assert ends == pytest.approx([low, high])
    # Without each compound in turn.
    without = []
    for left_out in range(3):
        kept = [
            np.mean([log_odds([errors[c] for c in range(3) if c != left_out]) for errors in seeds])
            for seeds in (WORSE, BETTER)
        ]
        without.append(kept[0] - kept[1])
    over_compounds = 2 / 3 * sum((value - np.mean(without)) ** 2 for value in without)
    over_seeds = sum(np.var(side, ddof=1) / 3 for side in sides)
    freedom = (over_seeds + over_compounds) ** 2 / (
        over_seeds**2 / oracle.df + over_compounds**2 / 2
    )
    half = stats.t.ppf(0.975, freedom) * math.sqrt(over_seeds + over_compounds)
    ends = [found[f"log_odds_{end}_both"].value for end in ("low", "high")]
    middle = found["log_odds"].value
    assert ends == pytest.approx([middle - half, middle + half])


def test_what_is_missing_is_said(tmp_path):
    run = write_run(tmp_path, "plain", 1, dict.fromkeys(COMPOUNDS, 2))
    found = analyse([run], OPTIONS)
    assert (found.scores, found.notes) == ([], ["lrf over plain: no run of lrf"])
    perfect = write_run(tmp_path, "lrf", 1, dict.fromkeys(COMPOUNDS, 0))
    better = write_run(tmp_path, "better", 1, dict.fromkeys(COMPOUNDS, 1))
    options = Options(pairs={"lrf over plain": ["plain", "lrf"], "other": ["plain", "better"]})
    found = analyse([run, perfect, better], options)
    # The other pair is scored all the same.
    assert {row.item_set for row in found.scores} == {"other"}
    assert found.notes == [
        "lrf over plain: a seed has no error, or nothing but errors, in all compounds or in all but "
        "one: its odds have no logarithm"
    ]


def test_predictions_of_another_checkpoint_do_not_count(tmp_path):
    """A run that keeps its last weights, too, has each sentence twice."""
    runs = [
        write_run(tmp_path, series, seed, dict(zip(COMPOUNDS, errors, strict=True)))
        for series, seeds in (("plain", WORSE), ("lrf", BETTER))
        for seed, errors in enumerate(seeds)
    ]
    expected = analyse(runs, OPTIONS).scores
    for run in runs:
        best = pq.read_table(run.files.evaluation.predictions)
        last = best.set_column(2, "prediction", [[""] * len(best)])
        both = pa.concat_tables(
            [
                best.append_column("readout", pa.array([None] * len(best), pa.string())),
                last.append_column("readout", pa.array(["last"] * len(best))),
            ]
        )
        pq.write_table(both, run.files.evaluation.predictions)
    assert analyse(runs, OPTIONS).scores == expected
    # By the last weights nothing but errors are made.
    by_last = [replace(run, readout="last") for run in runs]
    assert "nothing but errors" in analyse(by_last, OPTIONS).notes[0]
    of_another = [replace(run, readout="in_distribution") for run in runs]
    with pytest.raises(UserError, match="no predictions of the checkpoint 'in_distribution'"):
        analyse(of_another, OPTIONS)


def test_a_run_with_one_checkpoint_has_no_predictions_of_others(tmp_path):
    runs = [
        write_run(tmp_path, series, 1, dict.fromkeys(COMPOUNDS, 2)) for series in ("plain", "lrf")
    ]
    by_last = [replace(run, readout="last") for run in runs]
    with pytest.raises(UserError, match=r"predictions\.parquet has no predictions of the check"):
        analyse(by_last, OPTIONS)


def test_predictions_of_other_sentences_are_refused(tmp_path):
    runs = [
        write_run(tmp_path, series, 1, dict.fromkeys(COMPOUNDS, 2)) for series in ("plain", "lrf")
    ]
    file = runs[1].files.evaluation.predictions
    pq.write_table(pq.read_table(file, filters=[("row", "!=", 3)]), file)
    with pytest.raises(
        UserError, match=r"predictions\.parquet has not one prediction of each sentence"
    ):
        analyse(runs, OPTIONS)


def test_the_interval_over_seeds_and_compounds_covers_the_true_ratio():
    """Errors are drawn with a spread over seeds and over compounds, which both sides share in part."""
    generator, trials, seeds, compounds = np.random.default_rng(3), 400, 6, 200
    truth, covered, narrower = 0.3, 0, 0
    for _ in range(trials):
        shared = generator.normal(0, 0.8, compounds)
        sides = []
        for base in (-0.8, -0.8 - truth):
            logit = (
                base
                + shared
                + generator.normal(0, 0.1, (seeds, 1))
                + generator.normal(0, 0.3, compounds)
            )
            errors = generator.binomial(SENTENCES, 1 / (1 + np.exp(-logit))) / SENTENCES
            sides.append(
                SideErrors(tuple(map(str, range(compounds))), np.full(compounds, SENTENCES), errors)
            )
        effect = compare_over_seeds_and_compounds(*sides)
        low, high = effect.compute_interval()
        covered += low < TRUE_RATIO < high
        narrower += effect.error < math.sqrt(0.01 * 2 / seeds)
    assert covered / trials >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / trials)
    assert narrower < trials / 20


# ln of the odds ratio of the mean error rates that the draws above have, which the spread over
# compounds makes smaller.
def mean_rate(base: float) -> float:
    drawn = np.random.default_rng(4).normal(0, math.sqrt(0.8**2 + 0.1**2 + 0.3**2), 2_000_000)
    return float((1 / (1 + np.exp(-(base + drawn)))).mean())


TRUE_RATIO = math.log(mean_rate(-0.8) / (1 - mean_rate(-0.8))) - math.log(
    mean_rate(-1.1) / (1 - mean_rate(-1.1))
)
