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


def worst_variants(items: Sequence[str], f1s: Sequence[float]) -> list[int]:
    """The row that counts for each question of an adversarial set, by upstream's evaluation (Jia and Liang 2017).

    The key of a variant is that of its question with `-` and the variant's name behind it. Of the variants of a
    question the first with the lowest F1 counts, the question as it was only where it has none.
    """
    rows: dict[str, int] = {}
    for row, item in enumerate(items):
        question = item.partition("-")[0]
        before = rows.get(question)
        if before is None or items[before] == question or (item != question and f1s[row] < f1s[before]):
            rows[question] = row
    return list(rows.values())


def _f1(predicted: list[str], answer: list[str]) -> float:
    common = sum((Counter(predicted) & Counter(answer)).values())
    return 2 * common / (len(predicted) + len(answer)) if common else 0.0
