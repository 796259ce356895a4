from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_scripts.analyses import code_probe
from workflow_scripts.analyses.code_probe import (
    TAGGER,
    compute_probe_accuracy,
    find_most_frequent_tags,
)
from workflow_scripts.analyses.embedding_space import assign_codes
from workflow_scripts.analyses.options.code_probe import Options
from workflow_scripts.common.errors import UserError
from workflow_scripts.evaluation.compounds import PART_OF

TOKENS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from("NVD")), min_size=1, max_size=40)


@given(TOKENS)
def test_no_other_table_is_more_often_right(tokens: list[tuple[int, str]]) -> None:
    codes, tags = zip(*tokens, strict=True)
    best = compute_probe_accuracy(codes, tags, find_most_frequent_tags(codes, tags))
    assert best == pytest.approx(
        100
        * sum(max(sum(t == (c, tag) for t in tokens) for tag in "NVD") for c in set(codes))
        / len(tokens)
    )


def test_a_class_that_was_not_seen_is_wrong() -> None:
    assert compute_probe_accuracy([0, 1, 0], ["N", "N", "V"], {0: "N"}) == pytest.approx(100 / 3)


def test_scores_of_a_made_up_run(trained) -> None:
    run = trained("cognition/sq-transformer/srl")
    found = code_probe.analyse([run], Options(split="cg_test"), {})
    scores = {score.metric: score for score in found.scores}
    model, words = run.load()
    code = dict(zip(words, assign_codes(model, "source", range(len(words))), strict=True))

    def tokens(split: str) -> list[tuple[int, str]]:
        sentences = dict.fromkeys(run.read_pairs(split)["source"])
        return [
            (code[word], PART_OF.get(word, "other"))
            for sentence in sentences
            for word in sentence.split(" ")
        ]

    probe = find_most_frequent_tags(*zip(*tokens("train"), strict=True))
    expected = compute_probe_accuracy(*zip(*tokens("cg_test"), strict=True), probe)
    assert scores["pos_accuracy"].value == pytest.approx(expected)
    assert scores["pos_accuracy"].n == len(tokens("cg_test"))
    assert scores["pos_accuracy_words"].value == 100
    assert scores["pos_accuracy_none"].value <= scores["pos_accuracy"].value <= 100


def test_a_model_without_codes_is_noted(trained) -> None:
    run = trained("cognition/transformer/default")
    found = code_probe.analyse([run], Options(split="cg_test"), {})
    assert not found.scores and "without codes" in found.notes[0]


def test_real_data_need_the_tagger(sal) -> None:
    with pytest.raises(UserError, match=f"needs the source {TAGGER}"):
        code_probe.analyse([sal], Options(), {})


def test_tags_are_those_of_the_tagger_in_context(mirror: Path, sal) -> None:
    found = code_probe.analyse(
        [sal], Options(split="valid", sentences=50), {TAGGER: mirror / TAGGER}
    )
    scores = {score.metric: score.value for score in found.scores}
    assert scores["pos_accuracy_none"] <= scores["pos_accuracy"] <= 100
    # No bound: fitted on other sentences, but of a grammar so small that words are tagged nearly
    # alike everywhere.
    assert scores["pos_accuracy_words"] > 60
