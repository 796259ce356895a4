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
def compute_encoder_attention(model: nn.Module, sentences: Sequence[Sequence[int]]) -> list[np.ndarray]:
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


def make_word_swaps(sources: Sequence[str], replace: dict[str, str], count: int, seed: int) -> list[tuple[str, str]]:
    """Return (sentence with words replaced, sentence) for at most `count` random `sources` that have such a word."""
    swapped = {source: " ".join(replace.get(word, word) for word in source.split()) for source in sources}
    pairs = sorted((twin, source) for source, twin in swapped.items() if twin != source)
    drawn = np.random.default_rng(seed).permutation(len(pairs))[:count]
    return [pairs[index] for index in sorted(drawn)]


def analyse(runs: Sequence[TrainedRun], options: dict[str, Any]) -> AnalysisResult:
    """Compute maps of `sentences`, and the KL divergence from the map of the first to those of the others.

    options:
        sentences: sentences of one structure, the first one from training, the last one new. attention.csv has their
            maps, kl_by_head.csv the divergences KL(first || other) by layer and head (the paper does not name the
            direction). Score `attention_kl` (nats): that of the last, averaged over layers, heads and queries
            (including EOS).
        test: {split, replace, count, seed}: the score `attention_kl_test` is the same mean over sentences of a split,
            each against itself with words replaced.
    """
    given = merge_options(options, sentences=[], test=None)
    sentences = given["sentences"]
    if len(sentences) < 2:
        raise UserError("displays.yaml: option sentences must name at least two, to compare the last with the first")
    maps, by_head, scores = [], [], []
    for run in runs:
        model, words = run.load()
        found = compute_encoder_attention(model, encode_sentences(sentences, words, run))
        for sentence, attention in zip(sentences, found, strict=True):
            divergence = compute_kl_divergence(found[0], attention)
            maps.append(make_map_table(run, sentence, ("layer", "head", "query", "key"), "weight", attention))
            by_head.append(make_map_table(run, sentence, ("layer", "head"), "attention_kl", divergence.mean(-1)))
        scores += run.make_scores({"attention_kl": (divergence.mean(), "nats", divergence.size)})
        if given["test"]:
            scores += score_word_swaps(run, model, words, given["test"])
    files = {"attention": stack_tables(maps, ["sentence", "layer", "head", "query", "key", "weight"])}
    files["kl_by_head"] = stack_tables(by_head, ["sentence", "layer", "head", "attention_kl"])
    return AnalysisResult(scores, files)


def score_word_swaps(
    run: TrainedRun, model: nn.Module, words: list[str], options: dict[str, Any]
) -> list[dict[str, Any]]:
    """Compute the score `attention_kl_test`. Raises UserError if no sentence has a word to replace."""
    given = merge_options(options, split="test", replace={}, count=500, seed=0)
    pairs = make_word_swaps(run.list_sentences(given["split"], words), given["replace"], given["count"], given["seed"])
    if not pairs:
        raise UserError(f"{run.data}: no sentence of {given['split']} has the word {' or '.join(given['replace'])}")
    sides = [encode_sentences(side, words, run) for side in zip(*pairs, strict=True)]
    known, new = (compute_encoder_attention(model, side) for side in sides)
    means = [compute_kl_divergence(p, q).mean() for p, q in zip(known, new, strict=True)]
    return run.make_scores({"attention_kl_test": (np.mean(means), "nats", len(means))}, split=given["split"])
