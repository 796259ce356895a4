import numpy as np
import pytest
import torch
from scipy.stats import entropy as scipy_entropy

from workflow_scripts.analyses import attention_over_layers
from workflow_scripts.analyses.attention_over_layers import collect_fusion_weights, compute_entropy
from workflow_scripts.analyses.options.attention_over_layers import Options
from workflow_scripts.common.errors import UserError
from workflow_scripts.tasks.seq2seq.batches import read_pairs


def test_entropy_agrees_with_scipy_and_takes_zeros() -> None:
    weights = np.random.default_rng(0).dirichlet(np.ones(4), (3, 2))
    np.testing.assert_allclose(
        compute_entropy(weights), scipy_entropy(weights, axis=-1), atol=1e-12
    )
    assert compute_entropy(np.array([1.0, 0.0])) == 0


def test_no_padding_is_counted_and_each_pair_weighs_by_itself(trained) -> None:
    run = trained("scan-jump-x2/lrf/default")
    model, _ = run.load()
    pairs = read_pairs(run.data, "test")
    found = collect_fusion_weights(model, run, "test", len(pairs), 0)
    assert set(found) == {("encoder", 1), ("encoder", 2), ("decoder", 1), ("decoder", 2)}
    assert found["encoder", 2].shape == ((pairs.source.length + 1).sum(), 2, 2)
    assert found["decoder", 2].shape == ((pairs.target.length + 1).sum(), 2, 2)
    assert (found["encoder", 1] == 1).all()
    with torch.no_grad():
        batches = [pairs.make_batch(np.array([i])) for i in range(len(pairs))]
        alone = [model.compute_fusion(batch.source, batch.target_in)[0][1][0] for batch in batches]
    expected = torch.cat(alone).double().mean(0).numpy()
    np.testing.assert_allclose(found["encoder", 2].mean(0), expected, atol=1e-6)


def test_a_part_of_a_split_is_drawn_with_the_seed(trained) -> None:
    run = trained("scan-jump-x2/lrf/default")
    model, _ = run.load()
    first, again, other = (
        collect_fusion_weights(model, run, "test", 5, seed)["encoder", 2] for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again)
    assert first.shape != other.shape or not np.array_equal(first, other)


def test_references_that_are_no_tokens_are_refused(trained) -> None:
    run = trained("cognition/lrf/default")
    model, _ = run.load()
    with pytest.raises(
        UserError, match="the references of cg_test of cognition are not tokens; name another split"
    ):
        collect_fusion_weights(model, run, "cg_test", 5, 0)
    assert collect_fusion_weights(model, run, "test", 5, 0)["decoder", 2].shape[0] > 5


def test_scores_of_the_variants(trained) -> None:
    names = ("default", "uniform", "previous", "encoder", "with-current")
    runs = [trained(f"scan-jump-x2/lrf/{name}") for name in names]
    found = attention_over_layers.analyse(runs, Options(sentences=10))
    scores = {(row.variant, row.subset, row.metric): row.value for row in found.scores}
    assert scores["uniform", "all", "fused_layers"] == pytest.approx(2)
    assert scores["uniform", "all", "fusion_entropy"] == pytest.approx(100)
    assert scores["previous", "all", "fused_layers"] == pytest.approx(1)
    assert scores["previous", "all", "fusion_entropy"] == 0
    assert 1 < scores["default", "all", "fused_layers"] < 2
    sides = [scores["default", side, "fusion_entropy"] for side in ("encoder", "decoder")]
    assert scores["default", "all", "fusion_entropy"] == pytest.approx(np.mean(sides))
    assert ("encoder", "decoder", "fused_layers") not in scores
    assert 2 < scores["with-current", "encoder", "fused_layers"] < 3
    # The mean weights of the second layer, head by head.
    weights = collect_fusion_weights(runs[0].load()[0], runs[0], "test", 10, 0)
    means = [weights[side, 2].mean(0) for side in ("encoder", "decoder")]
    np.testing.assert_allclose(np.sum(means, axis=-1), 1, atol=1e-6)
    by_head = np.exp(scipy_entropy(means, axis=-1))
    assert by_head.mean() == pytest.approx(scores["default", "all", "fused_layers"])


def test_a_run_without_fuse_attention_is_refused(trained) -> None:
    run = trained("scan-jump-x2/lrf/matched")
    with pytest.raises(UserError, match="seed-1 has no fuse-attention to analyse"):
        attention_over_layers.analyse([run], Options())
