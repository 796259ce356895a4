"""Encoder attention for sentences of one structure, and its divergence (figures 1, 5 and 8)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas
import torch

from workflow_scripts.analyses.options.attention_maps import Options
from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import TrainedRun, encode_sentences, stack_tables

FLOOR = 1e-12
BATCH = 256  # sentences


def compute_kl_divergence(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Compute KL(p || q) = sum_k p_k ln(p_k / q_k) over the last axis, in nats: [..., S] -> [...].

    Both sides are first raised to `FLOOR`, so a zero of float32 costs at most ln(1 / FLOOR) = 27.6
    nats, and equal distributions give exactly 0.
    """
    p = np.maximum(np.asarray(p, np.float64), FLOOR)
    q = np.maximum(np.asarray(q, np.float64), FLOOR)
    return (p * np.log(p / q)).sum(-1)


@torch.no_grad()
def compute_encoder_attention(model: Any, sentences: Sequence[Sequence[int]]) -> list[np.ndarray]:
    """Compute the encoder attention of each sentence (ids with EOS).

    Returns float32 [layers, heads, S, S] each, queries first. A batch has sentences of one length,
    so it needs no padding.
    """
    maps: list[np.ndarray] = [np.empty(0)] * len(sentences)
    lengths = {len(ids) for ids in sentences}
    for length in lengths:
        indices = [index for index, ids in enumerate(sentences) if len(ids) == length]
        for start in range(0, len(indices), BATCH):
            batch = indices[start : start + BATCH]
            ids = torch.tensor([sentences[index] for index in batch])
            attention = model.compute_encoder_attention(ids)  # [layers, B, heads, S, S]
            by_sentence = attention.float().numpy().swapaxes(0, 1)
            for index, attention_map in zip(batch, by_sentence, strict=True):
                maps[index] = attention_map
    return maps


def make_map_table(
    run: TrainedRun, sentence: str, axes: Sequence[str], column: str, values: np.ndarray
) -> pandas.DataFrame:
    """Make a table with a row for each element of `values` with these `axes`.

    Layers and heads count from 1.
    """
    columns = {**run.columns, "sentence": sentence}
    for axis, position in zip(axes, np.indices(values.shape), strict=True):
        first = 1 if axis in ("layer", "head") else 0
        columns[axis] = position.ravel() + first
    columns[column] = values.ravel()
    return pandas.DataFrame(columns)


def analyse(runs: Sequence[TrainedRun], options: Options) -> AnalysisResult:
    """Compute maps of sentences, and the KL divergence from the first map to those of the others.

    attention.csv has the maps, kl_by_head.csv the divergences KL(first || other) by layer and head
    (the paper does not name the direction). Score `attention_kl` (nats): that of the last sentence,
    averaged over layers, heads and queries (including EOS).
    """
    sentences = options.sentences
    map_tables = []
    divergence_tables = []
    scores = []
    for run in runs:
        divergences = []
        model, words = run.load()
        maps = compute_encoder_attention(model, encode_sentences(sentences, words, run))
        for sentence, weights in zip(sentences, maps, strict=True):
            divergences.append(compute_kl_divergence(maps[0], weights))
            by_head = divergences[-1].mean(-1)
            axes = ("layer", "head", "query", "key")
            map_tables.append(make_map_table(run, sentence, axes, "weight", weights))
            divergence_tables.append(
                make_map_table(run, sentence, ("layer", "head"), "attention_kl", by_head)
            )
        last = divergences[-1]
        scores += run.make_scores({"attention_kl": (last.mean(), "nats", last.size)})
    files = {
        "attention": stack_tables(
            map_tables, ["sentence", "layer", "head", "query", "key", "weight"]
        ),
        "kl_by_head": stack_tables(
            divergence_tables, ["sentence", "layer", "head", "attention_kl"]
        ),
    }
    return AnalysisResult(scores, files)
