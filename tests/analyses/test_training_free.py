"""Controls without a model: known numbers of the published data, and small examples counted by
hand.
"""

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.preparing import prepare_data, write_data
from workflow_scripts.analyses.options.training_free import Options
from workflow_scripts.analyses.trained_runs import TrainedRun
from workflow_scripts.analyses.training_free import analyse, compute_overlaps
from workflow_scripts.data.datasets import bird, paws
from workflow_scripts.data.formats import hownet


def prepared(folder, task, made):
    out = folder / task
    spec = {
        "task": task,
        "prepare": bird.__name__,
        "options": {},
        "sources": [],
        "protocol": made.protocol,
    }
    write_data(made, spec, out)
    return TrainedRun(task, "bert", "ft", 1, made.protocol, folder / "run", out)


def found(analysis, **where):
    return [score.value for score in analysis.scores if score.has(where)]


def test_overlaps_on_bird(tmp_path, mirror):
    sources = {f"bird/{name}": mirror / "bird" / name for name in ("BiRD.txt", "BiRD-ABBA.txt")}
    runs = [
        prepared(tmp_path, task, prepare_data(bird, {"set": which}, sources))
        for task, which in (("bird", "all"), ("bird-abba", "abba"))
    ]
    analysis = analyse(runs, Options(), {name: mirror / name for name in hownet.SOURCES})
    (words,) = found(analysis, task="bird", readout="word_overlap", metric="pearson")
    (parts,) = found(analysis, task="bird", readout="sememe_overlap", metric="pearson")
    assert (words, parts) == (pytest.approx(33.8, abs=0.05), pytest.approx(41.8, abs=0.1))
    # The two phrases of each pair have the same words: there is nothing to correlate.
    assert not found(analysis, task="bird-abba")
    assert any(
        note.startswith("bird-abba, all, sememe_overlap: no pearson") for note in analysis.notes
    )
    assert {row.n for row in analysis.scores} == {3345}
    assert all(row.method is None and row.seed is None for row in analysis.scores)


def test_the_constant_answer_on_paws(tmp_path):
    run = prepared(tmp_path, "paws", prepare_data(paws, {"from": "stand_in", "validation": 80}, {}))
    analysis = analyse([run, run], Options(), {})
    test = pandas.read_parquet(run.data / "test.parquet")
    train = pandas.read_parquet(run.data / "train.parquet")
    answer = train["label"].mode()[0]
    for subset, rows in (("all", test), ("swap", test[test["subset"] == "swap"])):
        where = {"readout": "constant", "subset": subset}
        assert found(analysis, metric="accuracy", **where) == [
            pytest.approx(100 * (rows["label"] == answer).mean())
        ]
        assert found(analysis, metric="accuracy_label_0", **where) == [100.0 * (answer == 0)]
    assert found(analysis, metric="auc", subset="all") == [pytest.approx(50)]
    assert {row.protocol for row in analysis.scores} == {"stand_in"}


@pytest.mark.parametrize("answer", [0.0, 1.0])
def test_the_constant_answer_is_that_of_training(tmp_path, answer):
    made = prepare_data(paws, {"from": "stand_in", "validation": 80}, {})
    made.tables["train"]["label"] = [answer] * len(made.tables["train"]["label"])
    analysis = analyse([prepared(tmp_path, "paws", made)], Options(), {})
    right = 100 * np.mean(np.array(made.tables["test"]["label"]) == answer)
    assert found(analysis, metric="accuracy", subset="all") == [pytest.approx(right)]


PHRASES = st.lists(
    st.sampled_from(["river", "water", "house", "wall"]), min_size=1, max_size=3
).map(" ".join)


@given(st.lists(st.tuples(PHRASES, PHRASES), min_size=1, max_size=5), st.booleans())
def test_an_overlap_is_a_symmetric_share(pairs, by_sememes):
    known = {"river": [0, 1], "water": [1], "house": [2]} if by_sememes else {}
    forth, back = (
        compute_overlaps(pairs, known),
        compute_overlaps([pair[::-1] for pair in pairs], known),
    )
    assert (forth == back).all() and (forth >= 0).all() and (forth <= 1).all()
    same = np.array([set(first.split()) == set(second.split()) for first, second in pairs])
    assert (forth[same] == 1).all()


def test_sememes_of_all_words():
    known = {"river": [0, 1], "water": [1], "house": [2]}
    pairs = [("river house", "water"), ("wall", "water"), ("wall", "wall")]
    assert compute_overlaps(pairs, known).tolist() == [1 / 3, 0, 1]


def test_the_stand_in_for_bird_has_sememes_too(tmp_path):
    run = prepared(tmp_path, "bird", prepare_data(bird, {"from": "stand_in", "set": "all"}, {}))
    assert found(analyse([run], Options(), {}), readout="sememe_overlap", metric="spearman")
