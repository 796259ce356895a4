"""Exact match and F1 of answers that are spans of a text, by SQuAD's normalisation (Rajpurkar et al. 2016)."""

import re
import string
from collections import Counter
from collections.abc import Sequence

MARKS = str.maketrans("", "", string.punctuation)
ARTICLES = re.compile(r"\b(?:a|an|the)\b")


def normalised(text: str) -> str:
    """Lower-case, without ASCII punctuation and English articles, with single spaces."""
    return " ".join(ARTICLES.sub(" ", text.lower().translate(MARKS)).split())


def exact_match(predicted: str, answers: Sequence[str]) -> float:
    """1 where a right answer is the same after normalisation, else 0."""
    return float(any(normalised(predicted) == normalised(answer) for answer in answers))


def f1(predicted: str, answers: Sequence[str]) -> float:
    """The largest harmonic mean, over the right answers, of the shares of the words of each that the other has."""
    return max(_f1(normalised(predicted).split(), normalised(answer).split()) for answer in answers)


def _f1(predicted: list[str], answer: list[str]) -> float:
    common = sum((Counter(predicted) & Counter(answer)).values())
    return 2 * common / (len(predicted) + len(answer)) if common else 0.0
