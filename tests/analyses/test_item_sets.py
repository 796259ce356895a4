"""Shares on common items, counted by hand."""

import random
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from tests.analyses.small_runs import add_answers
from workflow_scripts.analyses.item_sets import analyse
from workflow_scripts.analyses.trained_runs import TrainedRun
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.plug_ins import NoOptions
from workflow_scripts.evaluation.scores import Score

SYNONYMS = {"intervention": "synonyms", "layer": None, "pooling": None, "rate": 0.25}
CAP = {
    "intervention": "cap",
    "layer": 1,
    "pooling": "mean",
    "rate": None,
    "intervention_seed": None,
}
#                       before, draw 1, draw 2, pooled
ANSWERS = {
    "ft": {"a": (1, 1, 0, 1), "b": (1, 0, 0, 0), "c": (1, 1, 1, 1), "d": (0, 1, 1, 1)},
    "carma": {"a": (1, 1, 1, 0), "b": (1, 1, 0, 0), "c": (0, 0, 0, 1), "d": (1, 1, 1, 1)},
}


def trained(
    folder: Path, variant: str, answers: dict[str, tuple[int, ...]], readout: str = "vocabulary"
) -> TrainedRun:
    """A run whose answers.parquet has two draws of synonyms and one pooling."""
    rows = []
    for item, (before, *after) in answers.items():
        wheres = [SYNONYMS | {"intervention_seed": 42}, SYNONYMS | {"intervention_seed": 7}, CAP]
        known = {"item": item, "readout": readout, "correct_before": bool(before)}
        rows += [
            known | where | {"correct": bool(right)}
            for where, right in zip(wheres, after, strict=True)
        ]
    return add_answers(folder, rows, variant=variant)


def found(scores: list[Score], variant: str, metric: str) -> dict[int | None, tuple[float, int]]:
    """Draw -> (value, n)."""
    rows = [row for row in scores if row.variant == variant and row.metric == metric]
    assert all(row.item_set == "common_correct" and row.split == "test" for row in rows)
    return {row.intervention_seed: (row.value, row.n) for row in rows}


@pytest.mark.parametrize(
    ("readout", "accuracy", "prefix"),
    [("vocabulary", "exact_match", ""), ("labels", "constrained", "constrained_")],
)
def test_both_are_measured_on_the_items_that_both_had_right(tmp_path, readout, accuracy, prefix):
    runs = [trained(tmp_path, variant, answers, readout) for variant, answers in ANSWERS.items()]
    scores = analyse(runs, NoOptions()).scores  # common: a and b
    assert found(scores, "ft", f"{prefix}consistency") == {42: (50.0, 2), 7: (0.0, 2)}
    assert found(scores, "carma", f"{prefix}consistency") == {42: (100.0, 2), 7: (50.0, 2)}
    assert found(scores, "ft", "items") == found(scores, "carma", "items") == {None: (2, 2)}
    assert found(scores, "ft", accuracy) == {None: (50.0, 2)}
    assert found(scores, "carma", accuracy) == {None: (0.0, 2)}
    # Deviation over mean of 100 and 50, with n - 1: sqrt(1250) / 75.
    assert found(scores, "carma", f"{prefix}cv") == {None: (pytest.approx(1250**0.5 / 75), 2)}
    assert found(scores, "carma", f"{prefix}cv_low")[None][0] < 1250**0.5 / 75


def test_seeds_readouts_and_rates_are_kept_apart(tmp_path):
    """Random answers, against loops."""
    rng = random.Random(0)
    runs, before, after = [], {}, {}
    for seed in (1, 2):
        for variant in ("ft", "carma"):
            rows = []
            for readout in ("vocabulary", "labels"):
                right = {item: rng.random() < 0.8 for item in "abcdefgh"}
                before[seed, variant, readout] = {item for item in right if right[item]}
                for rate, draw in ((0.25, 7), (0.25, 42), (0.4, 7), (0.4, 42)):
                    kept = {item: rng.random() < 0.6 for item in right}
                    after[seed, variant, readout, rate, draw] = {
                        item for item in kept if kept[item]
                    }
                    where = SYNONYMS | {"readout": readout, "rate": rate, "intervention_seed": draw}
                    pairs = {
                        item: {"correct_before": right[item], "correct": kept[item]}
                        for item in right
                    }
                    rows += [where | pair | {"item": item} for item, pair in pairs.items()]
            runs.append(add_answers(tmp_path, rows, "sst", variant=variant, seed=seed))
    expected = {}
    for (seed, variant, readout), mine in before.items():
        common = mine & before[seed, {"ft": "carma", "carma": "ft"}[variant], readout]
        of, prefix = (seed, variant, readout), {"vocabulary": "", "labels": "constrained_"}[readout]
        expected[*of, "items", None, None] = len(common)
        for rate in (0.25, 0.4):
            values = [100 * len(common & after[*of, rate, draw]) / len(common) for draw in (7, 42)]
            for draw, value in zip((7, 42), values, strict=True):
                expected[*of, prefix + "consistency", rate, draw] = value
            expected[*of, prefix + "cv", rate, None] = np.std(values, ddof=1) / np.mean(values)
            # where each item is kept independently
            kept = stats.binom(len(common), np.mean(values) / 100)
            expected[*of, prefix + "cv_noise", rate, None] = kept.std() / kept.mean()
    names = ("seed", "variant", "readout", "metric", "rate", "intervention_seed")
    found = {
        tuple(getattr(row, name) for name in names): row.value
        for row in analyse(runs, NoOptions()).scores
    }
    found = {key: value for key, value in found.items() if not key[3].endswith(("_low", "_high"))}
    assert found == pytest.approx(expected)


def test_no_common_item_no_score(tmp_path):
    wrong = {item: (0, *after) for item, (_, *after) in ANSWERS["ft"].items()}
    runs = [trained(tmp_path, "ft", wrong), trained(tmp_path, "carma", ANSWERS["carma"])]
    analysis = analyse(runs, NoOptions())
    rows = [(row.metric, row.value, row.readout) for row in analysis.scores]
    assert rows == [("items", 0, "vocabulary")] * 2
    ends = ("ft/seed-1: no common item by vocabulary", "carma/seed-1: no common item by vocabulary")
    assert analysis.notes == [f"idm/gpt2-small/{end}" for end in ends]


CVS, WHERE = {"cv", "cv_low", "cv_high", "cv_noise"}, "over 2 draws at rate 0.25 by vocabulary"


@pytest.mark.parametrize(
    ("after", "metrics", "note"),
    [
        ((0, 0, 1), set(), f"no CV {WHERE}, mean 0.0%"),
        ((1, 1, 1), CVS, f"CV 0, no logarithm {WHERE}"),
    ],
)
def test_a_cv_without_a_logarithm_is_noted(tmp_path, after, metrics, note):
    answers = {item: (before, *after) for item, (before, *_) in ANSWERS["ft"].items()}
    analysis = analyse(
        [trained(tmp_path, "ft", answers), trained(tmp_path, "carma", ANSWERS["carma"])],
        NoOptions(),
    )
    assert {
        row.metric for row in analysis.scores if row.variant == "ft" and "cv" in row.metric
    } == metrics
    assert len(analysis.notes) == 1 and analysis.notes[0].startswith(
        f"idm/gpt2-small/ft/seed-1: {note}"
    )


def test_a_variant_alone_is_noted(tmp_path):
    analysis = analyse([trained(tmp_path, "ft", ANSWERS["ft"])], NoOptions())
    assert analysis.scores == []
    assert analysis.notes == [
        "idm/gpt2-small/ft/seed-1: no other variant of this seed to share items with"
    ]


def test_a_run_without_answers_is_named(tmp_path):
    runs = [trained(tmp_path, variant, answers) for variant, answers in ANSWERS.items()]
    (runs[0].folder / "interventions/answers.parquet").unlink()
    with pytest.raises(
        UserError,
        match=r"answers.parquet does not exist; name the intervention of idm/gpt2-small/ft",
    ):
        analyse(runs, NoOptions())


def test_answers_cut_in_half_are_one_line(tmp_path):
    runs = [trained(tmp_path, variant, answers) for variant, answers in ANSWERS.items()]
    file = runs[0].folder / "interventions/answers.parquet"
    file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(UserError, match=r"answers\.parquet is no Parquet file"):
        analyse(runs, NoOptions())
