"""Structures of the outputs of a seq2seq run."""

import re

import numpy as np


def match_structures(outputs: list[str], targets: list[str], same_word: str) -> np.ndarray:
    """Return [N] bool: whether output and target have the same structure.

    They have if they are equal when all words that match `same_word` count as one word.
    """
    words = set()
    for sentence in {*outputs, *targets}:
        words.update(sentence.split(" "))
    structure_of = {word: "" if re.fullmatch(same_word, word) else word for word in words}
    are_equal = []
    for output, target in zip(outputs, targets, strict=True):
        output_structure = [structure_of[word] for word in output.split(" ")]
        target_structure = [structure_of[word] for word in target.split(" ")]
        are_equal.append(output_structure == target_structure)
    return np.array(are_equal)
