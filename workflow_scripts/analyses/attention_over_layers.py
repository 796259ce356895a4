"""How many earlier layers fuse-attention reads: the entropy of its weights (LRF)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import TrainedRun
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.plug_ins import merge_options
from workflow_scripts.models.lrf.model import FusedTransformer
from workflow_scripts.tasks.batching import bucket_by_length
from workflow_scripts.tasks.seq2seq.batches import read_pairs

BATCH_TOKENS = 4096


def collect_fusion_weights(
    model: FusedTransformer, run: TrainedRun, split: str, count: int, seed: int
) -> dict:
    """Return (side, layer from 1) -> weights [positions, heads, K] (float64) of at most `count` pairs of a split.

    Positions of padding are left out. The decoder reads the reference.
    """
    pairs = read_pairs(run.data, split)
    if not pairs.target.length.any():
        raise UserError(
            f"displays.yaml: the references of {split} of {run.task} are not tokens; name another split"
        )
    drawn = np.sort(np.random.default_rng(seed).permutation(len(pairs))[:count])
    lengths = [side.length[drawn] + 1 for side in (pairs.source, pairs.target)]
    longest = int(max(length.max() for length in lengths))
    found: dict[tuple[str, int], list[Tensor]] = {}
    for rows in bucket_by_length(*lengths, max(BATCH_TOKENS, longest)):
        batch = pairs.make_batch(drawn[rows])
        with torch.no_grad():
            encoder, decoder = model.compute_fusion(batch.source, batch.target_in)
        for side, by_layer, ids in (
            ("encoder", encoder, batch.source),
            ("decoder", decoder, batch.target_in),
        ):
            for layer, weights in enumerate(by_layer, start=1):
                found.setdefault((side, layer), []).append(weights[ids.ne(0)])
    return {where: torch.cat(weights).double().numpy() for where, weights in found.items()}


def compute_entropy(weights: np.ndarray) -> np.ndarray:
    """Compute -sum_k p_k ln p_k over the last axis, in nats; 0 ln 0 is 0."""
    return -(weights * np.log(np.maximum(weights, np.finfo(float).tiny))).sum(-1)


def analyse(runs: Sequence[TrainedRun], options: dict[str, Any]) -> AnalysisResult:
    """Give two scores of each run for `encoder`, `decoder` and `all`.

    options: split, sentences, seed: the data are at most `sentences` random pairs of the split.
    Scores are means over heads, and over the layers after the first (the first can read only one layer):
        fused_layers: exp of the entropy of the mean weights: 1 if all positions read the same layer, K if they read all
            K layers equally.
        fusion_entropy: the mean entropy of a position in percent of ln K: 0 if each position reads a single layer.
    A variant that fuses only the previous layer has no choice: its scores are 1 and 0.
    """
    given = merge_options(options, split="test", sentences=500, seed=0)
    scores = []
    for run in runs:
        model, _ = run.load()
        if not isinstance(model, FusedTransformer):
            raise UserError(
                f"displays.yaml: {run} has no fuse-attention to analyse; take it out of the analysis' runs"
            )
        weights_of = collect_fusion_weights(
            model, run, given["split"], given["sentences"], given["seed"]
        )
        by_side: dict[str, list[tuple[float, float]]] = {"encoder": [], "decoder": [], "all": []}
        for (side, layer), weights in weights_of.items():
            K = weights.shape[-1]
            if layer > 1:
                layers = float(np.exp(compute_entropy(weights.mean(0))).mean())
                entropy = 100 * float(compute_entropy(weights).mean()) / np.log(K) if K > 1 else 0.0
                for name in (side, "all"):
                    by_side[name].append((layers, entropy))
        for side, pairs in by_side.items():
            if pairs:
                layers, entropy = np.mean(pairs, axis=0)
                n = len(pairs)
                found = {
                    "fused_layers": (layers, "layers", n),
                    "fusion_entropy": (entropy, "percent", n),
                }
                scores += run.make_scores(found, subset=side, split=given["split"])
    return AnalysisResult(scores)
