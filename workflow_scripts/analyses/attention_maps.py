"""Encoder attention for sentences of one structure, and how far it diverges between them (figures 1, 5 and 8)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas
import torch
from torch import nn

from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import TrainedRun, encode_sentences, stack_tables
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.plug_ins import merge_options

FLOOR = 1e-12
BATCH = 256  # sentences


def compute_kl_divergence(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Compute KL(p || q) = sum_k p_k ln(p_k / q_k) over the last axis, in nats: [..., S] -> [...].

    Both sides are first raised to `FLOOR`, so a zero of float32 costs at most ln(1 / FLOOR) = 27.6 nats, and equal
    distributions give exactly 0.
    """
    p, q = (np.maximum(np.asarray(side, np.float64), FLOOR) for side in (p, q))
    return (p * np.log(p / q)).sum(-1)


@torch.no_grad()
def compute_encoder_attention(
    model: nn.Module, sentences: Sequence[Sequence[int]]
) -> list[np.ndarray]:
    """Compute the encoder attention of each sentence (ids with EOS): float32 [layers, heads, S, S], queries first.

    A batch has sentences of one length, so it needs no padding.
    """
    maps: list[np.ndarray] = [np.empty(0)] * len(sentences)
    for length in {len(ids) for ids in sentences}:
        indices = [index for index, ids in enumerate(sentences) if len(ids) == length]
        for start in range(0, len(indices), BATCH):
            batch = indices[start : start + BATCH]
            attention = model.compute_encoder_attention(torch.tensor([sentences[i] for i in batch]))
            for index, found in zip(batch, attention.float().numpy().swapaxes(0, 1), strict=True):
                maps[index] = found
    return maps


def make_map_table(
    run: TrainedRun, sentence: str, axes: Sequence[str], column: str, values: np.ndarray
) -> pandas.DataFrame:
    """Make a table with a row for each element of `values` with these `axes`. Layers and heads count from 1."""
    places = zip(axes, np.indices(values.shape), strict=True)
    index = {axis: place.ravel() + (axis in ("layer", "head")) for axis, place in places}
    return pandas.DataFrame({**run.columns, "sentence": sentence, **index, column: values.ravel()})


def analyse(runs: Sequence[TrainedRun], options: dict[str, Any]) -> AnalysisResult:
    """Compute maps of `sentences`, and the KL divergence from the map of the first to those of the others.

    options:
        sentences: sentences of one structure, the first one from training, the last one new. attention.csv has their
            maps, kl_by_head.csv the divergences KL(first || other) by layer and head (the paper does not name the
            direction). Score `attention_kl` (nats): that of the last, averaged over layers, heads and queries
            (including EOS).
    """
    sentences = merge_options(options, sentences=[])["sentences"]
    if len(sentences) < 2:
        raise UserError(
            "displays.yaml: option sentences must name at least two, to compare the last with the first"
        )
    maps, by_head, scores = [], [], []
    for run in runs:
        model, words = run.load()
        found = compute_encoder_attention(model, encode_sentences(sentences, words, run))
        for sentence, attention in zip(sentences, found, strict=True):
            divergence = compute_kl_divergence(found[0], attention)
            maps.append(
                make_map_table(
                    run, sentence, ("layer", "head", "query", "key"), "weight", attention
                )
            )
            by_head.append(
                make_map_table(
                    run, sentence, ("layer", "head"), "attention_kl", divergence.mean(-1)
                )
            )
        scores += run.make_scores({"attention_kl": (divergence.mean(), "nats", divergence.size)})
    files = {
        "attention": stack_tables(maps, ["sentence", "layer", "head", "query", "key", "weight"])
    }
    files["kl_by_head"] = stack_tables(by_head, ["sentence", "layer", "head", "attention_kl"])
    return AnalysisResult(scores, files)
