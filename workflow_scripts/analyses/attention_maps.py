"""Encoder attention for sentences of one structure, and how far it diverges between them (figures 1, 5 and 8)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas
import torch
from torch import Tensor, nn

from workflow_scripts.analyses.trained_runs import (
    AnalysisResult,
    TrainedRun,
    encode_sentence,
    make_score_row,
    stack_tables,
)
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.options import merge_options

DIRECTIONS = ("forward", "reverse", "symmetric")


def compute_kl_divergence(p: np.ndarray, q: np.ndarray, direction: str = "forward", floor: float = 1e-12) -> np.ndarray:
    """KL(p || q) = sum_k p_k ln(p_k / q_k) over the last axis, in nats: [..., S] -> [...].

    `forward` is KL(p || q), `reverse` KL(q || p), `symmetric` their mean. Both sides are raised to `floor` first, so a
    zero of float32 (an attention logit about 100 below the largest) costs at most ln(1/floor) = 27.6 nats rather than
    infinity, and equal distributions give exactly 0.
    """
    p, q = (np.maximum(np.asarray(side, np.float64), floor) for side in (p, q))
    if direction == "symmetric":
        return 0.5 * ((p - q) * np.log(p / q)).sum(-1)
    if direction == "reverse":
        p, q = q, p
    return (p * np.log(p / q)).sum(-1)


def compute_encoder_attention(model: nn.Module, sentences: Sequence[Sequence[int]]) -> list[np.ndarray]:
    """Encoder attention of each sentence (ids that end with EOS): float32 [layers, heads, S, S], queries before keys.

    Sentences of one length are one batch, so that nothing is padded.
    """
    maps: list[np.ndarray | None] = [None] * len(sentences)
    by_length: dict[int, list[int]] = {}
    for index, ids in enumerate(sentences):
        by_length.setdefault(len(ids), []).append(index)
    for indices in by_length.values():
        for start in range(0, len(indices), 256):
            batch = indices[start : start + 256]
            with torch.no_grad():
                attention: Tensor = model.compute_encoder_attention(torch.tensor([sentences[i] for i in batch]))
            for row, index in enumerate(batch):
                maps[index] = attention[:, row].float().numpy()
    return maps


def map_table(run: TrainedRun, sentence: str, attention: np.ndarray) -> pandas.DataFrame:
    """One row per layer, head, query and key of `attention` [layers, heads, S, S]; layers and heads count from 1."""
    layer, head, query, key = (index.ravel() for index in np.indices(attention.shape))
    return pandas.DataFrame(
        {
            **run.columns,
            "sentence": sentence,
            "layer": layer + 1,
            "head": head + 1,
            "query": query,
            "key": key,
            "weight": attention.ravel(),
        }
    )


def make_word_swaps(sources: Sequence[str], replace: dict[str, str], count: int, seed: int) -> list[tuple[str, str]]:
    """(sentence with the words of `replace` exchanged, sentence) for at most `count` of `sources`, drawn at random.

    Only sentences that hold one of the words have a twin.
    """
    swapped = {source: " ".join(replace.get(word, word) for word in source.split()) for source in sources}
    pairs = sorted((twin, source) for source, twin in swapped.items() if twin != source)
    drawn = np.random.default_rng(seed).permutation(len(pairs))[:count]
    return [pairs[index] for index in sorted(drawn)]


def analyse(runs: Sequence[TrainedRun], options: dict[str, Any]) -> AnalysisResult:
    """Maps of `sentences`, and the KL divergence from the map of the first to those of the others.

    options:
        sentences: sentences of one structure, one that was trained first, a new one last. Their maps are written to
            attention.csv, the divergences by layer and head to kl_by_head.csv. The score `attention_kl`, in nats, is
            the divergence from the first to the last: the mean over layers, heads and queries (the closing EOS is one
            of them). The paper says only "averaged over all heads and layers".
        direction: forward (KL(first || other), the default), reverse or symmetric; the paper does not say which.
        test: {split, replace, count, seed}: the same mean over sentences of a split and their twins with words
            exchanged, as the score `attention_kl_test`: one pair of sentences is a small sample.
    """
    given = merge_options(options, sentences=[], direction="forward", test=None)
    if given["direction"] not in DIRECTIONS:
        raise UserError(f"displays.yaml: option direction is {given['direction']!r}; known: {', '.join(DIRECTIONS)}")
    if len(given["sentences"]) < 2:
        raise UserError("displays.yaml: option sentences must name at least two, to compare the last with the first")
    tables, by_head, scores = [], [], []
    for run in runs:
        model, words = run.load()
        maps = compute_encoder_attention(
            model, [encode_sentence(sentence, words, run) for sentence in given["sentences"]]
        )
        for sentence, attention in zip(given["sentences"], maps, strict=True):
            tables.append(map_table(run, sentence, attention))
            divergence = compute_kl_divergence(maps[0], attention, given["direction"])
            by_head.append(head_table(run, sentence, divergence.mean(-1)))
        scores.append(make_score_row(run, "attention_kl", divergence.mean(), "nats", divergence.size))
        if given["test"]:
            scores.append(score_word_swaps(run, model, words, given["direction"], given["test"]))
    files = {
        "attention": stack_tables(tables, ["sentence", "layer", "head", "query", "key", "weight"]),
        "kl_by_head": stack_tables(by_head, ["sentence", "layer", "head", "attention_kl"]),
    }
    return AnalysisResult(scores, files)


def head_table(run: TrainedRun, sentence: str, divergence: np.ndarray) -> pandas.DataFrame:
    """One row per layer and head of `divergence` [layers, heads]; both count from 1."""
    layer, head = (index.ravel() + 1 for index in np.indices(divergence.shape))
    content = {"sentence": sentence, "layer": layer, "head": head, "attention_kl": divergence.ravel()}
    return pandas.DataFrame({**run.columns, **content})


def score_word_swaps(
    run: TrainedRun, model: nn.Module, words: list[str], direction: str, options: dict[str, Any]
) -> dict[str, Any]:
    """The score `attention_kl_test` of `analyse`. Raises UserError if no sentence has a twin."""
    given = merge_options(options, split="test", replace={}, count=500, seed=0)
    pairs = make_word_swaps(run.list_sentences(given["split"], words), given["replace"], given["count"], given["seed"])
    if not pairs:
        raise UserError(f"{run.data}: no sentence of {given['split']} holds {' or '.join(given['replace'])}")
    known, new = (
        compute_encoder_attention(model, [encode_sentence(s, words, run) for s in side])
        for side in zip(*pairs, strict=True)
    )
    means = [compute_kl_divergence(p, q, direction).mean() for p, q in zip(known, new, strict=True)]
    return make_score_row(run, "attention_kl_test", float(np.mean(means)), "nats", len(means), split=given["split"])
