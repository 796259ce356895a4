"""Structures of the outputs of a seq2seq run."""

import re

import numpy as np


def match_structures(outputs: list[str], targets: list[str], same_word: str) -> np.ndarray:
    """Return [N] bool: whether output and target are equal if all words that match `same_word` count as one word."""
    words = {word for sentence in {*outputs, *targets} for word in sentence.split(" ")}
    unified = {word: "" if re.fullmatch(same_word, word) else word for word in words}
    structures = (
        [[unified[word] for word in text.split(" ")] for text in texts]
        for texts in (outputs, targets)
    )
    return np.array([output == target for output, target in zip(*structures, strict=True)])
