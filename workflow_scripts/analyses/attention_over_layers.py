"""How many earlier layers fuse-attention reads: the entropy of its weights (LRF)."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from workflow_scripts.analyses.options.attention_over_layers import Options
from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import TrainedRun
from workflow_scripts.common.errors import UserError
from workflow_scripts.models.lrf.model import FusedTransformer
from workflow_scripts.tasks.batching import bucket_by_length
from workflow_scripts.tasks.seq2seq.batches import read_pairs

BATCH_TOKENS = 4096


class LayerOfSide(NamedTuple):
    """A layer of a side (encoder or decoder); layers count from 1."""

    side: str
    layer: int


def collect_fusion_weights(
    model: FusedTransformer, run: TrainedRun, split: str, count: int, seed: int
) -> dict[LayerOfSide, np.ndarray]:
    """Return the weights [positions, heads, K] (float64) of at most `count` pairs of a split.

    Positions of padding are left out. The decoder reads the reference.
    """
    pairs = read_pairs(run.data, split)
    if not pairs.target.length.any():
        raise UserError(
            f"displays.yaml: the references of {split} of {run.task} are not tokens; "
            "name another split"
        )
    sample = np.sort(np.random.default_rng(seed).permutation(len(pairs))[:count])
    source_length = pairs.source.length[sample] + 1  # with EOS
    target_length = pairs.target.length[sample] + 1
    longest = int(max(source_length.max(), target_length.max()))
    batches: dict[LayerOfSide, list[Tensor]] = {}
    for rows in bucket_by_length(source_length, target_length, max(BATCH_TOKENS, longest)):
        batch = pairs.make_batch(sample[rows])
        with torch.no_grad():
            encoder, decoder = model.compute_fusion(batch.source, batch.target_in)
        sides = (("encoder", encoder, batch.source), ("decoder", decoder, batch.target_in))
        for side, by_layer, ids in sides:
            for layer, weights in enumerate(by_layer, start=1):
                without_padding = weights[ids.ne(0)]
                batches.setdefault(LayerOfSide(side, layer), []).append(without_padding)
    return {layer: torch.cat(weights).double().numpy() for layer, weights in batches.items()}


def compute_entropy(weights: np.ndarray) -> np.ndarray:
    """Compute -sum_k p_k ln p_k over the last axis, in nats; 0 ln 0 is 0."""
    return -(weights * np.log(np.maximum(weights, np.finfo(float).tiny))).sum(-1)


class LayerScores(NamedTuple):
    """Scores of one layer; see `analyse`."""

    fused_layers: float
    fusion_entropy: float


def score_layer(weights: np.ndarray) -> LayerScores:
    """Score the weights [positions, heads, K] of a layer."""
    K = weights.shape[-1]
    fused_layers = float(np.exp(compute_entropy(weights.mean(0))).mean())
    if K == 1:
        return LayerScores(fused_layers, 0.0)
    entropy = 100 * float(compute_entropy(weights).mean()) / np.log(K)
    return LayerScores(fused_layers, entropy)


def analyse(runs: Sequence[TrainedRun], options: Options) -> AnalysisResult:
    """Give two scores of each run for `encoder`, `decoder` and `all`.

    Scores are means over heads, and over the layers after the first. In the first, which reads the
    embedded tokens alone, there is no choice; where a layer fuses its own attention's output, too,
    the first one is left out all the same, so that variants are compared on the same layers:
        fused_layers: exp of the entropy of the mean weights: 1 if all positions read the same
            layer, K if they read all K layers equally.
        fusion_entropy: the mean entropy of a position in percent of ln K: 0 if each position reads
            a single layer.
    A variant that fuses only the previous layer has no choice: its scores are 1 and 0.
    """
    split = options.split
    scores = []
    for run in runs:
        model, _ = run.load()
        if not isinstance(model, FusedTransformer):
            raise UserError(
                f"displays.yaml: {run} has no fuse-attention to analyse; "
                "take it out of the analysis' runs"
            )
        weights_of = collect_fusion_weights(model, run, split, options.sentences, options.seed)
        by_side: dict[str, list[LayerScores]] = {"encoder": [], "decoder": [], "all": []}
        for (side, layer), weights in weights_of.items():
            if layer > 1:
                layer_scores = score_layer(weights)
                by_side[side].append(layer_scores)
                by_side["all"].append(layer_scores)
        for side, layers in by_side.items():
            if layers:
                fused_layers, entropy = np.mean(layers, axis=0)
                values = {
                    "fused_layers": (fused_layers, "layers", len(layers)),
                    "fusion_entropy": (entropy, "percent", len(layers)),
                }
                scores += run.make_scores(values, subset=side, split=split)
    return AnalysisResult(scores)
