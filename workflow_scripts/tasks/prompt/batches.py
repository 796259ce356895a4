"""Prompts as padded batches for causal language models."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

from workflow_scripts.common.errors import UserError
from workflow_scripts.tasks.batching import TensorBatch

OUTSIDE = -1  # of every word: BOS and padding


@dataclass(frozen=True)
class PromptBatch(TensorBatch):
    """Prompts, padded on the right, each with the single token that answers it.

    ids [B, S] int64; real [B, S] bool, false on padding; words [B, S] int64: number of the whitespace word (or group of
    words, see `encode_prompts`) of a token, -1 on BOS and padding; last [B] int64: position of the last real token;
    label [B] int64.
    """

    ids: Tensor
    real: Tensor
    words: Tensor
    last: Tensor
    label: Tensor


@dataclass(frozen=True)
class Prompts:
    """N tokenised prompts, without those whose answer has several tokens.

    `items` [N]: rows of the table; `ids` and `words`: one int64 array per prompt; `label` [N] int64.
    """

    items: np.ndarray
    ids: list[np.ndarray]
    words: list[np.ndarray]
    label: np.ndarray

    @cached_property
    def length(self) -> np.ndarray:
        """Number of tokens of each prompt [N]."""
        return np.array([len(row) for row in self.ids])

    def make_batch(self, rows: np.ndarray) -> PromptBatch:
        """Make one padded batch of the prompts of `rows`."""
        length = self.length[rows]
        real = np.arange(length.max()) < length[:, None]
        ids, words = np.zeros(real.shape, np.int64), np.full(real.shape, OUTSIDE, np.int64)
        ids[real] = np.concatenate([self.ids[row] for row in rows])
        words[real] = np.concatenate([self.words[row] for row in rows])
        return PromptBatch(*map(torch.from_numpy, (ids, real, words, length - 1, self.label[rows])))


def assign_words(text: str, ends: np.ndarray) -> np.ndarray:
    """Return the whitespace word of `text` of each token, from the ends [n] of the tokens' offsets.

    The last character of a token decides, because a token may begin with the space before its word.
    """
    characters = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    word_of_character = np.cumsum(characters == ord(" "))
    return word_of_character[np.maximum(ends - 1, 0)]


def merge_groups(groups: Sequence[int], before: int, count: int) -> np.ndarray:
    """Return for each of the `count` words of a prompt [count] the first word of its group.

    groups [n] numbers the words of the content, which come after `before` words of the template. Neighbours with the
    same number are one group. Words of the template are not grouped.
    """
    first = np.arange(count)
    starts = np.flatnonzero(np.diff(groups, prepend=np.nan))
    sizes = np.diff(starts, append=len(groups))
    first[before : before + len(groups)] = before + np.repeat(starts, sizes)
    return first


def encode_prompts(
    tokenizer: Tokenizer,
    contents: Sequence[str],
    labels: Sequence[str],
    template: str,
    bos: int | None,
    label_space: bool = False,
    groups: Sequence[Sequence[int]] | None = None,
) -> Prompts:
    """Tokenise `template` around each content, with `bos` before each prompt if given.

    Labels are tokenised alone, with a space before them if `label_space`; only labels of one token are kept. `groups`
    has a number for each word of each content (between single spaces): neighbours with the same number count as one
    word. Raises UserError for another count of numbers.
    """
    spaced = [f" {label}" if label_space else label for label in labels]
    answers = tokenizer.encode_batch(spaced, add_special_tokens=False)
    items = np.array([row for row, answer in enumerate(answers) if len(answer.ids) == 1], np.int64)
    texts = [template.replace("{content}", contents[row]) for row in items]
    before = template.partition("{content}")[0].count(" ")
    ids, words = [], []
    for row, text, encoding in zip(items, texts, tokenizer.encode_batch(texts, add_special_tokens=False), strict=True):
        start = [] if bos is None else [bos]
        ids.append(np.array(start + encoding.ids, np.int64))
        numbers = assign_words(text, np.array([end for _, end in encoding.offsets], np.int64))
        if groups is not None:
            count = contents[row].count(" ") + 1
            if len(groups[row]) != count:
                found = f"row {row + 1} has {len(groups[row])} groups for {count} words"
                raise UserError(f"{found}; give each word a number")
            numbers = merge_groups(groups[row], before, text.count(" ") + 1)[numbers]
        words.append(np.concatenate([np.full(len(start), OUTSIDE), numbers]))
    return Prompts(items, ids, words, np.array([answers[row].ids[0] for row in items], np.int64))
