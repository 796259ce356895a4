"""Codes of CAT: shares that can be counted by hand, and a real small model from end to end."""

import json
from collections import Counter
from itertools import chain
from statistics import mean

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.data.preparing import prepare_data, write_data
from workflow_scripts.analyses import code_weights
from workflow_scripts.analyses.options.code_weights import Options
from workflow_scripts.analyses.trained_runs import TrainedRun
from workflow_scripts.common.errors import UserError
from workflow_scripts.data.datasets import pretraining_pairs
from workflow_scripts.models.cat import model as cat
from workflow_scripts.models.hugging_face import load_tokenizer

SETTINGS = {
    "family": "cat",
    "layers": 2,
    "heads": 2,
    "width": 16,
    "feed_forward": 32,
    "positions": 64,
    "codes": 8,
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    out = tmp_path_factory.mktemp("pairs") / "data"
    options = {"from": "stand_in", "vocabulary_size": 400, "valid_fraction": 0.1}
    made = prepare_data(pretraining_pairs, options, {})
    spec = {
        "task": "pairs-wordpiece",
        "prepare": "workflow_scripts.data.datasets.pretraining_pairs",
    }
    write_data(made, spec | {"options": options, "sources": [], "protocol": "stand_in"}, out)
    return out


@pytest.fixture(scope="module")
def count(data):
    return len(json.loads((data / "sememe_names.json").read_text()))


@pytest.fixture(scope="module")
def run(data, count, tmp_path_factory):
    settings = SETTINGS | {"last_codes": count}
    torch.manual_seed(1)
    model = cat.build(cat.Settings(**settings), load_tokenizer(data).get_vocab_size())
    return save_run(model, settings, data, tmp_path_factory.mktemp("run"))


def save_run(model, settings, data, folder):
    model.save_pretrained(folder / "checkpoint")
    (folder / "checkpoint/tokenizer.json").write_bytes((data / "tokenizer.json").read_bytes())
    (folder / "run.json").write_text(json.dumps({"spec": {"model": settings | {"name": "cat"}}}))
    return TrainedRun("pairs-wordpiece", "cat", "pretrain", 1, "stand_in", folder, data)


@pytest.fixture
def make_by_hand(data, count, tmp_path):
    """A function that returns a run whose pieces of even ids attend to one sememe alone, those of
    odd ids to another.

    All layers but the last map a piece to a pattern of its own kind, and the patterns are
    orthogonal.
    """

    def make(even_code, odd_code):
        settings = SETTINGS | {"layers": 1, "last_codes": count}
        model = cat.build(cat.Settings(**settings), load_tokenizer(data).get_vocab_size())
        even, odd = torch.tensor([[1.0, -1], [1, 1]]).repeat(1, 8)
        odd[8:] = -1
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if "LayerNorm" not in name and not name.endswith("scale"):
                    parameter.zero_()
            model.embeddings.word_embeddings.weight[0::2] = even
            model.embeddings.word_embeddings.weight[1::2] = odd
            (codebook,) = model.codebooks
            codebook.query.weight.copy_(torch.eye(16))
            codebook.key.weight.copy_(torch.eye(16))
            codebook.codebook[even_code] = even
            codebook.codebook[odd_code] = odd
        return save_run(model, settings, data, tmp_path)

    return make


@pytest.fixture(scope="module")
def known_words(data):
    """The words of all held-out first sentences that have sememes: (ids of the pieces, numbers of
    the sememes).
    """
    table = pq.read_table(data / "sememes.parquet").to_pydict()
    exact = dict(zip(table["word"], table["sememes"], strict=True))
    tokenizer, found = load_tokenizer(data), []
    for ids in pq.read_table(data / "valid.parquet")["first_ids"].to_pylist():
        words = []
        for number in ids:
            piece = tokenizer.id_to_token(number)
            if piece.startswith("##"):
                words[-1][0].append(number)
                words[-1][1] += piece[2:]
            else:
                words.append([[number], piece])
        found += [(pieces, set(exact[word])) for pieces, word in words if exact.get(word)]
    return found


def test_a_real_model(run):
    analysis = code_weights.analyse(
        [run], Options(words=["goat", "run", "zyx"], top=3, sentences=40)
    )
    scores = {(row.metric, row.layer): row.value for row in analysis.scores}
    assert 0 < scores["active_codes", 1] <= 8 and 0 < scores["used_codes", 2] <= 100
    # Random weights know nothing of sememes.
    assert abs(scores["gold_weight", None] - scores["gold_weight_mean_word", None]) < 5
    words, gold = (analysis.files[name] for name in ("words", "gold"))
    assert set(gold.loc[gold["word"] == "goat", "sememe"]) == {"animal", "mountain"}
    assert set(gold["word"]) == {"goat", "run"} and set(words["word"]) == {"goat", "run", "zyx"}
    assert (words.groupby("word")["rank"].max() <= 3).all()
    own = gold.groupby("word")["sememe"].agg(set).to_dict()
    assert all(row.gold == (row.sememe in own.get(row.word, ())) for row in words.itertuples())


@pytest.mark.parametrize(("text", "words"), [("goat-run", 3), ("run goat", 2)])
def test_a_text_of_several_words_is_refused(run, text, words):
    options = Options(words=["goat", text], top=3, sentences=40)
    with pytest.raises(UserError, match=f"'{text}' is {words} words for the tokenizer"):
        code_weights.analyse([run], options)


def read_gold_scores(run, **options):
    options = Options(sentences=10**6, longest=1000, **options)
    analysis = code_weights.analyse([run], options)
    return {row.metric: row.value for row in analysis.scores if row.layer is None}


def test_a_model_whose_attention_is_known(make_by_hand, known_words, count):
    usual = [
        number for number, _ in Counter(chain(*(own for _, own in known_words))).most_common(2)
    ]
    found = read_gold_scores(make_by_hand(*usual))
    even = [sum(piece % 2 == 0 for piece in pieces) / len(pieces) for pieces, _ in known_words]
    has = [[code in own for _, own in known_words] for code in usual]
    value = [
        share * one + (1 - share) * other for share, one, other in zip(even, *has, strict=True)
    ]
    assert found["gold_weight"] == pytest.approx(100 * mean(value), abs=1e-3)
    shared = mean(even) * mean(has[0]) + (1 - mean(even)) * mean(has[1])
    assert found["gold_weight_mean_word"] == pytest.approx(100 * shared, abs=1e-3)
    assert found["gold_weight_one_sememe"] == pytest.approx(100 * mean(has[0]))
    assert found["gold_weight_uniform"] == pytest.approx(
        100 * mean(len(own) / count for _, own in known_words)
    )
    # no known word has pieces of both kinds
    assert found["gold_first"] == pytest.approx(found["gold_weight"])
    assert {0, 1} == set(even) and len({round(value, 2) for value in found.values()}) == len(
        found
    ) - 1


def test_words_with_a_sememe_can_be_left_out(make_by_hand, known_words, data):
    (usual, _), (other, _) = Counter(chain(*(own for _, own in known_words))).most_common(2)
    run, names = make_by_hand(usual, other), json.loads((data / "sememe_names.json").read_text())
    found = read_gold_scores(run, without=[names[usual]])
    rest = [(pieces, own) for pieces, own in known_words if usual not in own]
    value = [other in own and pieces[0] % 2 == 1 for pieces, own in rest]
    assert found["gold_weight"] == pytest.approx(100 * mean(value), abs=1e-3)
    with pytest.raises(UserError, match="no sememe 'noun'; correct `without`"):
        read_gold_scores(run, without=[names[usual], "noun"])


def test_a_model_that_attends_to_all_sememes_alike(make_by_hand):
    run = make_by_hand(0, 1)
    model, _ = code_weights.load_cat_model(run)
    with torch.no_grad():
        for projection in (model.codebooks[0].query, model.codebooks[0].key):
            projection.weight.zero_()
            projection.bias.fill_(1.0)
    model.save_pretrained(run.folder / "checkpoint")
    found = read_gold_scores(run)
    assert found["gold_weight"] == pytest.approx(found["gold_weight_uniform"])
    assert found["gold_weight"] == pytest.approx(found["gold_weight_mean_word"])


def test_weights_of_a_text_do_not_hang_on_its_neighbours(run):
    model, tokenizer = code_weights.load_cat_model(run)
    short, long = np.array([7, 8]), np.arange(7, 20)
    (alone,) = code_weights.read_codes(model, tokenizer, [short])
    (together,) = code_weights.read_codes(model, tokenizer, [long, short])
    assert together.words.sum(1).tolist() == [13, 2]
    for one, other in zip(alone.codes, together.codes, strict=True):
        np.testing.assert_allclose(one[0][alone.words[0]], other[1][together.words[1]], atol=1e-5)


def test_a_negative_scalar_of_the_norm_leaves_weights_positive(run):
    """As for the loss, which takes |O|."""
    model, tokenizer = code_weights.load_cat_model(run)
    (before,) = code_weights.read_codes(model, tokenizer, [np.arange(7, 20)])
    model.codebooks[-1].scale.data.neg_()
    (after,) = code_weights.read_codes(model, tokenizer, [np.arange(7, 20)])
    np.testing.assert_array_equal(after.codes[-1], before.codes[-1])


def test_words_are_the_mean_of_their_pieces():
    codes = np.array([[[0, 0, 9.0], [1, 0, 0], [0, 1, 0], [0, 0, 4], [9, 9, 9]]])
    words = np.array([[False, True, True, True, False]])
    batch = code_weights.TokenCodes(np.zeros((1, 5), int), words, [codes])
    number, pieces, sememes = np.array([0, 0, 1]), np.array([2, 1]), np.array([[1, -1], [-1, -1]])
    weights, gold = code_weights.select_word_weights(batch, number, pieces, sememes)
    assert weights.tolist() == [[0.5, 0.5, 0]] and gold.tolist() == [[False, True, False]]


def test_gold_scores_by_hand():
    weights = np.array([[3.0, 1, 0], [0, 2, 2], [0, 0, 0]])
    gold = np.array([[True, False, False], [False, False, True], [True, True, True]])
    found = code_weights.compute_gold_scores(weights, gold)
    assert found["zero_words"] == (pytest.approx(100 / 3), "percent", 3)
    assert found["gold_weight"] == (pytest.approx(62.5), "percent", 2)
    # Mean shares are 3/8, 3/8 and 1/4.
    assert found["gold_weight_mean_word"] == (pytest.approx(31.25), "percent", 2)
    assert found["gold_weight_uniform"] == (pytest.approx(100 / 3), "percent", 2)
    # Each sememe is that of at most one of the two words.
    assert found["gold_weight_one_sememe"] == (pytest.approx(50), "percent", 2)
    assert found["gold_first"] == (pytest.approx(50), "percent", 2)
    assert code_weights.compute_gold_scores(np.zeros((0, 3)), np.zeros((0, 3), bool)) == {}


def test_words_that_attend_to_their_own_sememes_alone():
    gold = np.array([[True, False, False], [False, True, True]])
    found = {
        metric: value
        for metric, (value, _, _) in code_weights.compute_gold_scores(gold / 2, gold).items()
    }
    assert (found["gold_weight"], found["gold_first"], found["zero_words"]) == (100, 100, 0)
    assert (
        found["gold_weight_mean_word"]
        == found["gold_weight_uniform"]
        == found["gold_weight_one_sememe"]
        == 50
    )


@given(
    st.lists(st.integers(0, 1000).map(lambda n: n / 100), min_size=3, max_size=3), st.integers(1, 3)
)
def test_the_largest_weights_come_first(weights, top):
    table = code_weights.make_word_tables(
        "w", np.array(weights), np.array([1]), ["a", "b", "c"], top
    )["words"]
    expected = sorted((weight for weight in weights if weight > 0), reverse=True)[:top]
    assert table["share"].tolist() == pytest.approx(
        [100 * weight / sum(weights) for weight in expected]
    )
    assert table["gold"].tolist() == [name == "b" for name in table["sememe"]]
