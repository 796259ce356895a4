"""Encoder attention for sentences of one structure, and how far it diverges between them (figures 1, 5 and 8)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas
import torch
from torch import Tensor, nn

from workflow_scripts.analyses.trained import Analysis, TrainedRun, options_from, score, sentence_ids
from workflow_scripts.errors import UserError

DIRECTIONS = ("forward", "reverse", "symmetric")


def kl_divergence(p: np.ndarray, q: np.ndarray, direction: str = "forward", floor: float = 1e-12) -> np.ndarray:
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


def encoder_maps(model: nn.Module, sentences: Sequence[Sequence[int]]) -> list[np.ndarray]:
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
                attention: Tensor = model.encoder_attention(torch.tensor([sentences[i] for i in batch]))
            for row, index in enumerate(batch):
                maps[index] = attention[:, row].float().numpy()
    return maps


def map_table(run: TrainedRun, sentence: str, attention: np.ndarray) -> pandas.DataFrame:
    """One row per layer, head, query and key of `attention` [layers, heads, S, S]; layers and heads count from 1."""
    layer, head, query, key = (index.ravel() for index in np.indices(attention.shape))
    return pandas.DataFrame(
        {
            **run.columns(),
            "sentence": sentence,
            "layer": layer + 1,
            "head": head + 1,
            "query": query,
            "key": key,
            "weight": attention.ravel(),
        }
    )


def twins(sources: Sequence[str], replace: dict[str, str], count: int, seed: int) -> list[tuple[str, str]]:
    """(sentence with the words of `replace` exchanged, sentence) for at most `count` of the distinct `sources`, drawn at random.

    Only sentences that hold one of the words have a twin.
    """
    swapped = {source: " ".join(replace.get(word, word) for word in source.split()) for source in sources}
    pairs = sorted((twin, source) for source, twin in swapped.items() if twin != source)
    drawn = np.random.default_rng(seed).permutation(len(pairs))[:count]
    return [pairs[index] for index in sorted(drawn)]


def analyse(runs: Sequence[TrainedRun], options: dict[str, Any]) -> Analysis:
    """Maps of `sentences`, and the KL divergence from the map of the first of `pair` to that of the second.

    options:
        sentences: whose maps are written to attention.csv (weights with 6 digits).
        pair: two sentences of one structure, the trained one first. The score `attention_kl` is the mean of the
            divergence over layers, heads and queries (the closing EOS is one), in nats. The paper says only "averaged
            over all heads and layers".
        direction: forward (KL(trained || new), the default), reverse or symmetric; the paper does not say which.
        test: {split, replace, count, seed}: the same mean over sentences of a split and their twins with words
            exchanged, as the score `attention_kl_test`: one pair of sentences is a small sample.
    """
    given = options_from(options, sentences=[], pair=None, direction="forward", test=None)
    if given["direction"] not in DIRECTIONS:
        raise UserError(f"options.direction is {given['direction']!r}; known: {', '.join(DIRECTIONS)}")
    tables, scores, by_head = [], [], []
    for run in runs:
        model, words = run.load()
        maps = encoder_maps(model, [sentence_ids(sentence, words, run) for sentence in given["sentences"]])
        tables += [map_table(run, *named) for named in zip(given["sentences"], maps, strict=True)]
        if given["pair"]:
            p, q = encoder_maps(model, [sentence_ids(sentence, words, run) for sentence in given["pair"]])
            divergence = kl_divergence(p, q, given["direction"])
            scores.append(score(run, "attention_kl", divergence.mean(), "nats", divergence.size))
            by_head.append(_by_head(run, divergence.mean(-1)))
        if given["test"]:
            test = options_from(given["test"], split="test", replace={}, count=500, seed=0)
            pairs = twins(run.sources(test["split"]), test["replace"], test["count"], test["seed"])
            sides = [encoder_maps(model, [sentence_ids(s, words, run) for s in side]) for side in zip(*pairs, strict=True)]
            means = [kl_divergence(p, q, given["direction"]).mean() for p, q in zip(*sides, strict=True)]
            scores.append(score(run, "attention_kl_test", np.mean(means), "nats", len(means), split=test["split"]))
    files = {"attention": pandas.concat(tables)} if tables else {}
    if by_head:
        files["kl_by_head"] = pandas.concat(by_head)
    return Analysis(scores, files)


def _by_head(run: TrainedRun, divergence: np.ndarray) -> pandas.DataFrame:
    """One row per layer and head of `divergence` [layers, heads]."""
    layer, head = (index.ravel() + 1 for index in np.indices(divergence.shape))
    return pandas.DataFrame({**run.columns(), "layer": layer, "head": head, "attention_kl": divergence.ravel()})
