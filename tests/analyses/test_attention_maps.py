import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import entropy

from workflow_scripts.analyses import attention_maps
from workflow_scripts.analyses.attention_maps import (
    compute_encoder_attention,
    compute_kl_divergence,
)
from workflow_scripts.analyses.options.attention_maps import Options
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import parse_as
from workflow_scripts.models.sq_transformer import model as sq_transformer

PAIR = ["walk around left", "jump around left"]
positive = arrays(np.float64, (2, 3, 4), elements=st.floats(1e-3, 1))


def normalised(rows: np.ndarray) -> np.ndarray:
    return rows / rows.sum(-1, keepdims=True)


@given(positive, positive)
def test_divergence_agrees_with_scipy(p: np.ndarray, q: np.ndarray) -> None:
    p, q = normalised(p), normalised(q)
    np.testing.assert_allclose(compute_kl_divergence(p, q), entropy(p, q, axis=-1), atol=1e-12)
    assert not compute_kl_divergence(p, p).any()


def test_a_zero_costs_no_more_than_the_floor() -> None:
    assert compute_kl_divergence(np.array([1.0, 0.0]), np.array([0.0, 1.0])) == pytest.approx(
        -np.log(1e-12), rel=1e-9
    )


def test_sal_attends_alike_in_sentences_of_one_code_sequence() -> None:
    torch.manual_seed(3)
    settings = {
        "layers": 2,
        "heads": 2,
        "width": 16,
        "feed_forward": 24,
        "attention": "sal",
        "source_codes": 4,
    }
    model = sq_transformer.build(sq_transformer.Settings(**settings), 40, 12).eval()
    codes = model.assign_codes("source", torch.arange(40)).tolist()
    shared = max(set(codes[4:]), key=codes[4:].count)
    first, second, third = [word for word in range(4, 40) if codes[word] == shared][:3]
    other = next(word for word in range(4, 40) if codes[word] != shared)
    same, twin, unlike = compute_encoder_attention(
        model, [[first, third, 2], [second, third, 2], [other, third, 2]]
    )
    # kernels may add up the rows of a batch in other orders
    np.testing.assert_allclose(same, twin, atol=1e-6)
    assert compute_kl_divergence(same, twin).max() < 1e-6
    assert compute_kl_divergence(same, unlike).max() > 1e-3


def test_maps_come_in_the_order_of_the_sentences() -> None:
    torch.manual_seed(0)
    model = sq_transformer.build(
        sq_transformer.Settings(**{"layers": 2, "heads": 2, "width": 16, "feed_forward": 24}),
        20,
        12,
    ).eval()
    sentences = [[5, 6, 2], [7, 2], [8, 9, 10, 2], [11, 2]]
    maps = compute_encoder_attention(model, sentences)
    assert [m.shape for m in maps] == [(2, 2, len(s), len(s)) for s in sentences]
    for sentence, found in zip(sentences, maps, strict=True):
        np.testing.assert_allclose(
            found, compute_encoder_attention(model, [sentence])[0], atol=1e-6
        )
        np.testing.assert_allclose(found.sum(-1), 1, atol=1e-5)


def test_analysis_of_two_runs(trained) -> None:
    runs = [trained(f"scan-complexity-{size}/transformer/default") for size in ("1x", "20x")]
    found = attention_maps.analyse(runs, Options(sentences=["look around left", *PAIR]))
    scores = {(row.task, row.metric): row for row in found.scores}
    assert len(scores) == 2 and all(row.value > 0 and row.unit == "nats" for row in scores.values())
    # The mean over heads of kl_by_head.csv, from the first sentence to the last, is the score.
    heads = found.files["kl_by_head"]
    mine = heads[(heads["task"] == "scan-complexity-20x") & (heads["sentence"] == PAIR[1])]
    assert mine["attention_kl"].mean() == pytest.approx(
        scores["scan-complexity-20x", "attention_kl"].value
    )
    assert not heads.loc[heads["sentence"] == "look around left", "attention_kl"].any()
    # The score from the maps, by scipy.
    weights = found.files["attention"]
    mine = weights[weights["task"] == "scan-complexity-20x"]
    sides = [mine[mine["sentence"] == sentence] for sentence in ("look around left", PAIR[1])]
    by_query = [list(side.groupby(["layer", "head", "query"])["weight"]) for side in sides]
    divergences = [entropy(p, q) for (_, p), (_, q) in zip(*by_query, strict=True)]
    score = scores["scan-complexity-20x", "attention_kl"]
    assert (score.value, score.n) == (
        pytest.approx(np.mean(divergences), rel=1e-5),
        len(divergences),
    )
    rows = weights.groupby(["task", "sentence", "layer", "head", "query"])["weight"].sum()
    np.testing.assert_allclose(rows, 1, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sentence": PAIR}, "did you mean 'sentences'"),
        ({"sentences": ["skip around left", *PAIR]}, "no source word 'skip'"),
        ({"sentences": PAIR[:1]}, "at least 2 items"),
        ({"sentences": [*PAIR, "jump left"]}, "'jump left' has 2 words, and .* has 3; their maps"),
    ],
)
def test_wrong_options_are_named(trained, options: dict, message: str) -> None:
    run = trained("scan-complexity-1x/transformer/default")
    with pytest.raises(UserError, match=message):
        attention_maps.analyse([run], parse_as(Options, options, "displays.yaml"))
