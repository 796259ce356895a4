"""Which earlier layers fuse-attention reads: mean weights, their histogram and entropy, layer by layer (LRF)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas
import torch
from torch import Tensor

from workflow_scripts.analyses.trained_runs import AnalysisResult, TrainedRun, make_score_row, stack_tables
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.options import merge_options
from workflow_scripts.models.lrf.model import FusedTransformer
from workflow_scripts.tasks.batching import bucket_by_length
from workflow_scripts.tasks.seq2seq.batches import read_pairs

BATCH_TOKENS = 4096
SIDES = ("encoder", "decoder")
COLUMNS = {
    "mean_weights": ["side", "layer", "head", "fused_layer", "weight"],
    "histogram": ["side", "layer", "fused_layer", "low", "high", "share"],
    "entropy": ["side", "layer", "head", "nats", "largest"],
}


def collect_fusion_weights(model: FusedTransformer, run: TrainedRun, split: str, count: int, seed: int) -> dict:
    """(side, layer) -> weights of at most `count` drawn pairs of a split: float64 [positions, heads, K], no padding.

    The decoder is given the reference. Layers count from 1; one without fuse-attention is left out.
    """
    pairs = read_pairs(run.data, split)
    if not pairs.target.length.any():
        raise UserError(f"displays.yaml: the references of {split} of {run.task} are not tokens; name another split")
    drawn = np.sort(np.random.default_rng(seed).permutation(len(pairs))[:count])
    lengths = [side.length[drawn] + 1 for side in (pairs.source, pairs.target)]
    longest = int(max(length.max() for length in lengths))
    found: dict[tuple[str, int], list[Tensor]] = {}
    for rows in bucket_by_length(*lengths, max(BATCH_TOKENS, longest)):
        batch = pairs.make_batch(drawn[rows])
        with torch.no_grad():
            encoder, memory = model.compute_encoder_fusion(batch.source)
            decoder = model.compute_decoder_fusion(memory, batch.target_in)
        for side, by_layer, ids in (("encoder", encoder, batch.source), ("decoder", decoder, batch.target_in)):
            for layer, weights in enumerate(by_layer, start=1):
                found.setdefault((side, layer), []).append(weights[ids.ne(0)])
    return {where: torch.cat(weights).double().numpy() for where, weights in found.items()}


def compute_entropy(weights: np.ndarray) -> np.ndarray:
    """-sum_k p_k ln p_k over the last axis, in nats; 0 ln 0 is 0."""
    return -(weights * np.log(np.maximum(weights, np.finfo(float).tiny))).sum(-1)


def make_layer_tables(weights: np.ndarray, fused: Sequence[int], bins: int) -> dict[str, pandas.DataFrame]:
    """Tables of one layer, from its weights [positions, heads, K] on the layers `fused` [K].

    mean_weights: by head. histogram: share of (position, head) by weight, in `bins` of equal width. entropy: by head,
    the mean over positions, and that of ln K, the largest that there can be.
    """
    heads, edges = weights.shape[1], np.linspace(0, 1, bins + 1)
    head, place = (index.ravel() for index in np.indices(weights.shape[1:]))
    means = {"head": head + 1, "fused_layer": np.asarray(fused)[place], "weight": weights.mean(0).ravel()}
    shares = [np.histogram(weights[..., k], edges)[0] / weights[..., k].size for k in range(len(fused))]
    histogram = {
        "fused_layer": np.repeat(fused, bins),
        "low": np.tile(edges[:-1], len(fused)),
        "high": np.tile(edges[1:], len(fused)),
        "share": np.concatenate(shares),
    }
    nats = {"head": np.arange(heads) + 1, "nats": compute_entropy(weights).mean(0), "largest": np.log(len(fused))}
    return {
        name: pandas.DataFrame(content)
        for name, content in (("mean_weights", means), ("histogram", histogram), ("entropy", nats))
    }


def analyse(runs: Sequence[TrainedRun], options: dict[str, Any]) -> AnalysisResult:
    """Attention over layers of every run, as tables, and two scores for `encoder`, `decoder` and `all` (both).

    options: split, sentences, seed: at most so many pairs of the split, drawn at random; bins: of the histogram.
    Scores are means over layers from the second on (the first has one layer to read), each over heads:
      fused_layers: exp of the entropy of the mean weights, the number of layers that equal weights would need: 1 where
        all positions read one and the same layer, K where all K are read alike;
      fusion_entropy: the mean entropy of a position in percent of ln K: 0 where it reads one layer, whichever it is.
    Over the layer before alone both have nothing to choose from: 1, and 0.
    """
    given = merge_options(options, split="test", sentences=500, seed=0, bins=20)
    tables: dict[str, list[pandas.DataFrame]] = {name: [] for name in COLUMNS}
    scores = []
    for run in runs:
        model, _ = run.load()
        if not isinstance(model, FusedTransformer):
            raise UserError(f"displays.yaml: {run} has no fuse-attention to analyse; take it out of the analysis' runs")
        found = collect_fusion_weights(model, run, given["split"], given["sentences"], given["seed"])
        chosen: dict[str, list[tuple[float, float]]] = {}
        for (side, layer), weights in found.items():
            K = weights.shape[-1]
            fused = [layer - 1] if model.settings.fuse_over == "previous" else list(range(K))
            for name, table in make_layer_tables(weights, fused, given["bins"]).items():
                tables[name].append(table.assign(**run.columns, side=side, layer=layer))
            if layer > 1:
                spread = float(np.exp(compute_entropy(weights.mean(0))).mean())
                undecided = 100 * float(compute_entropy(weights).mean()) / np.log(K) if K > 1 else 0.0
                chosen.setdefault(side, []).append((spread, undecided))
        chosen["all"] = [pair for side in SIDES for pair in chosen.get(side, ())]
        for side, pairs in chosen.items():
            if pairs:
                spread, undecided = np.mean(pairs, axis=0)
                where = {"subset": side, "split": given["split"]}
                scores.append(make_score_row(run, "fused_layers", spread, "layers", len(pairs), **where))
                scores.append(make_score_row(run, "fusion_entropy", undecided, "percent", len(pairs), **where))
    return AnalysisResult(scores, {name: stack_tables(tables[name], columns) for name, columns in COLUMNS.items()})
