"""Differences with intervals over seeds and items: against loops, an analysis of variance, and simulated truths."""

import math
import statistics
from functools import cache
from pathlib import Path

import numpy as np
import pandas
import pytest
from scipy import stats

from tests.analyses.small_runs import add_answers
from workflow_scripts.analyses.items_and_seeds import Answers, analyse, compute_two_way_effect
from workflow_scripts.analyses.trained_runs import TrainedRun
from workflow_scripts.evaluation.statistics import average_over_seeds_and_items

OPTIONS = {"variant": "carma", "over": "ft", "layer": 1}
POOLINGS, DRAWS, RATES = ("max", "mean"), (42, 7, 19), (0.25, 0.4)


def made(folder: Path, method: str, variant: str, seed: int, items: str, right_before: float = 0.6) -> TrainedRun:
    """A run with random answers to items, a letter each, in both readouts."""
    rng, rows = np.random.default_rng([ord(c) for c in f"{method}{variant}{seed}"]), []
    drawn = {"intervention": "synonyms"}
    synonyms = [drawn | {"rate": rate, "intervention_seed": draw} for rate in RATES for draw in DRAWS]
    cap = [{"intervention": "cap", "layer": layer, "pooling": pooling} for layer in (1, 2) for pooling in POOLINGS]
    for readout in ("vocabulary", "labels"):
        for item in items:
            before = bool(rng.random() < right_before)
            known = {"item": item, "readout": readout, "correct_before": before}
            rows += [known | {"correct": bool(rng.random() < 0.5)} | where for where in synonyms + cap]
    return add_answers(folder, rows, method=method, variant=variant, seed=seed)


def selected(scores: list[dict], subset: str, **where) -> dict[str, float]:
    """Metric -> value of the measure `where`."""
    names = ("intervention", "rate", "layer", "item_set")
    rows = [row for row in scores if {name: row[name] for name in names if row.get(name)} == where]
    return {row["metric"]: row["value"] for row in rows if row["subset"] == subset}


@cache
def read_rows(run: TrainedRun) -> list[dict]:
    return pandas.read_parquet(run.folder / "interventions/answers.parquet").to_dict("records")


def value(run: TrainedRun, intervention: str, without: str = "", **where) -> float:
    """Percent right after the intervention among the items right before, leaving out an item: by a loop."""
    wanted = {"readout": "vocabulary", "intervention": intervention, "correct_before": True} | where
    mine = [row for row in read_rows(run) if row["item"] != without and wanted.items() <= row.items()]
    return sum(100 * row["correct"] for row in mine) / len(mine)


def looped(
    runs: list[TrainedRun], methods: list[str], seeds: list[int], items: str, *where, **more
) -> dict[str, float]:
    """Effect and both intervals of carma less ft, by loops over seeds and left-out items."""
    by_name = {(run.method, run.variant, run.seed): run for run in runs}

    def of_seed(seed: int, without: str = "") -> float:
        pairs = [(by_name[m, "carma", seed], by_name[m, "ft", seed]) for m in methods]
        return statistics.mean(value(a, *where, without, **more) - value(b, *where, without, **more) for a, b in pairs)

    values = [of_seed(seed) for seed in seeds]
    left_out = [statistics.mean(of_seed(seed, item) for seed in seeds) for item in items]
    n, count, mean = len(values), len(items), statistics.mean(values)
    of_seeds = statistics.variance(values) / n
    of_items = (count - 1) / count * sum((v - statistics.mean(left_out)) ** 2 for v in left_out)
    freedom = (of_seeds + of_items) ** 2 / (of_seeds**2 / (n - 1) + of_items**2 / (count - 1))
    alone = stats.t.ppf(0.975, n - 1) * math.sqrt(of_seeds)
    both = stats.t.ppf(0.975, freedom) * math.sqrt(of_seeds + of_items)
    ends = {"seeds_low": mean - alone, "seeds_high": mean + alone, "both_low": mean - both, "both_high": mean + both}
    return {"difference": mean, "items": count} | ends


def test_own_right_items_are_those_of_loops(tmp_path):
    """Two models with items of their own, each seed with its right ones; every item is right somewhere."""
    items = {"one": "abcdefghij", "two": "fghijklmno"}
    runs = [made(tmp_path, m, v, s, items[m]) for m in items for v in ("carma", "ft") for s in (1, 2, 3)]
    analysis = analyse(runs, OPTIONS | {"means": {"mean": ["one", "two"]}})
    assert analysis.notes == []
    cases = {"one": ["one"], "two": ["two"], "mean": ["one", "two"]}
    for subset, methods in cases.items():
        every = "".join(sorted({letter for method in methods for letter in items[method]}))
        for rate in RATES:
            found = selected(analysis.scores, subset, intervention="synonyms", rate=rate, item_set="own_correct")
            assert found == pytest.approx(looped(runs, methods, [1, 2, 3], every, "synonyms", rate=rate))
        found = selected(analysis.scores, subset, intervention="cap", layer=1, item_set="own_correct")
        assert found == pytest.approx(looped(runs, methods, [1, 2, 3], every, "cap", layer=1))


def test_accuracy_is_on_the_same_items_of_all_seeds(tmp_path):
    runs = [made(tmp_path, "one", v, s, "abcdefgh") for v in ("carma", "ft") for s in (1, 2)]
    found = selected(analyse(runs, OPTIONS).scores, "one", item_set="all")
    tables = {}
    for run in runs:
        answers = pandas.read_parquet(run.folder / "interventions/answers.parquet")
        answers = answers[answers["readout"] == "vocabulary"].drop_duplicates("item").sort_values("item")
        tables[run.variant, run.seed] = 100.0 * answers["correct_before"].to_numpy()
    table = np.array([tables["carma", seed] - tables["ft", seed] for seed in (1, 2)])
    effect = average_over_seeds_and_items(table)
    assert found["difference"] == pytest.approx(table.mean()) and found["items"] == 8
    assert (found["both_low"], found["both_high"]) == pytest.approx((effect.low, effect.high))


def test_jackknives_of_whole_tables_are_the_mean_squares():
    """Of the same items throughout they give (MS_S + MS_I) / (n I); one uncounted answer must hardly change it."""
    rng = np.random.default_rng(1)
    left, right = (Answers(rng.normal(size=(1, 6, 300)), np.ones((1, 6, 300), bool)) for _ in "ab")
    table = (left.right - right.right)[0]
    squares = 300 * table.mean(1).var(ddof=1) + 6 * table.mean(0).var(ddof=1)
    left.counted[0, 0, 0] = False
    assert compute_two_way_effect(left, right).error ** 2 == pytest.approx(squares / (6 * 300), rel=0.05)


def test_the_interval_covers_the_truth_where_items_differ_by_seed():
    """Seeds and items with effects of their own and a right set for each seed and side, about a third of the items."""
    rng, covered, alone, trials, seeds, items = np.random.default_rng(5), 0, 0, 400, 6, 100
    for _ in range(trials):
        of_items = rng.normal(size=(2, 1, 1, items))
        of_seeds = 0.2 * rng.normal(size=(2, 1, seeds, 1))
        values = of_items + of_seeds + rng.normal(size=(2, 1, seeds, items))
        counted = rng.random((2, 1, seeds, items)) < 0.35
        left, right = (Answers(values[side], counted[side]) for side in (0, 1))
        effect = compute_two_way_effect(left, right)
        covered += effect.low <= 0 <= effect.high
        differences = left.compute_seed_means() - right.compute_seed_means()
        alone += stats.ttest_1samp(differences, 0).pvalue >= 0.05
    assert covered / trials >= 0.93
    assert alone < covered  # seeds alone take the items for the only ones


def test_one_seed_has_a_difference_and_no_interval(tmp_path):
    runs = [made(tmp_path, "one", v, 1, "abcdefgh") for v in ("carma", "ft")]
    analysis = analyse(runs, OPTIONS)
    assert {row["metric"] for row in analysis.scores} == {"difference", "items"} and analysis.notes == []


def test_seeds_without_a_right_answer_are_left_out_and_said(tmp_path):
    runs = [
        made(tmp_path, "one", v, s, "abcdefgh", 0 if (v, s) == ("ft", 2) else 0.6)
        for v in ("carma", "ft")
        for s in (1, 2, 3)
    ]
    analysis = analyse(runs, OPTIONS)
    assert analysis.notes == [
        f"idm, one, {what}, own_correct: 1 seeds without a right answer of a side are left out"
        for what in ("cap, 1", "synonyms, 0.25", "synonyms, 0.4")
    ]
    assert {row["n"] for row in analysis.scores if row.get("intervention") and row["metric"] == "difference"} == {2}


def test_a_variant_without_its_rival_is_noted(tmp_path):
    analysis = analyse([made(tmp_path, "one", "carma", 1, "abc")], OPTIONS)
    assert analysis.scores == [] and analysis.notes == ["idm, one: no seed has carma and ft of every method"]
