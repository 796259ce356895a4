"""Scores under interventions from answers: numbers worked out by hand, and changed answers."""

import pandas as pd
import pytest

from workflow_scripts.evaluation.scores import ScoreKey
from workflow_scripts.reporting.committed.rescoring_answers import score_answers

CAP = {"intervention": "cap", "layer": 7, "pooling": "max", "rate": None, "intervention_seed": None}


def make_answers(columns: dict, before: str, after: str) -> list[dict]:
    """A row per item: 1 for a right answer, 0 for a wrong one."""
    return [
        columns | {"correct_before": first == "1", "correct": second == "1"}
        for first, second in zip(before, after, strict=True)
    ]


def test_right_answers_are_counted_on_all_items_and_on_those_that_were_right_before():
    columns = CAP | {"readout": "vocabulary"}
    rows = make_answers(columns, "11100", "10010") + make_answers(
        columns | {"readout": "labels"}, "00000", "10000"
    )
    key = ScoreKey("test", "all", "exact_match", "vocabulary", "cap", 7, "max", None, "all")
    assert score_answers(pd.DataFrame(rows), "test") == {
        key: 40,
        key._replace(item_set="own_correct"): pytest.approx(100 / 3),
        key._replace(metric="constrained", readout="labels"): 20,  # none was right before
    }


def test_scores_with_synonyms_are_means_over_draws():
    """Of four right answers 3 and 1 are kept: 75 and 25%, mean 50, deviation 25 times root 2."""
    rows = []
    for draw, after in ((1, "11101"), (2, "10000")):
        columns = {"intervention": "synonyms", "rate": 0.25, "readout": "vocabulary"}
        columns |= {"layer": None, "pooling": None, "intervention_seed": draw}
        rows += make_answers(columns, "11110", after)
    found = score_answers(pd.DataFrame(rows), "test")
    key = ScoreKey("test", "all", "consistency", "vocabulary", "synonyms", None, None, 0.25)
    own = key._replace(item_set="own_correct")
    assert found[own] == 50
    assert found[own._replace(metric="cv")] == pytest.approx(2**0.5 / 2)
    assert found[key._replace(metric="exact_match", item_set="all")] == 50  # of 4 and 1 of 5


def test_scores_of_a_run_are_told_apart_in_words():
    key = ScoreKey("test", "all", "exact_match", "vocabulary", "cap", 7, "max", None, "all")
    assert str(key) == "exact_match of test/all/vocabulary/cap/7/max/all"
    assert str(ScoreKey("test", "all", "bleu", None)) == "bleu of test/all"
