"""Exact match and F1 of answer spans, with SQuAD's normalisation (Rajpurkar et al. 2016)."""

import re
import string
from collections import Counter
from collections.abc import Sequence

MARKS = str.maketrans("", "", string.punctuation)
ARTICLES = re.compile(r"\b(?:a|an|the)\b")


def normalise_answer(text: str) -> str:
    """Convert a text to lower case; remove ASCII punctuation, English articles and repeated spaces."""
    return " ".join(ARTICLES.sub(" ", text.lower().translate(MARKS)).split())


def compute_exact_match(predicted: str, answers: Sequence[str]) -> float:
    """Return 1 if the prediction equals a right answer after normalisation, else 0."""
    return float(any(normalise_answer(predicted) == normalise_answer(answer) for answer in answers))


def compute_f1(predicted: str, answers: Sequence[str]) -> float:
    """Return the highest F1 (harmonic mean of word precision and recall) over the right answers."""
    words, best = normalise_answer(predicted).split(), 0.0
    for answer in answers:
        right = normalise_answer(answer).split()
        common = (Counter(words) & Counter(right)).total()
        best = max(best, 2 * common / (len(words) + len(right)) if common else 0.0)
    return best


def select_worst_variants(items: Sequence[str], f1s: Sequence[float]) -> list[int]:
    """Return, for each question of an adversarial set, the one row that counts (Jia and Liang 2017, official code).

    A variant's key is the question's key, `-` and the variant's name. The first variant with the lowest F1 counts; the
    unchanged question counts only if it has no variants.
    """
    rows: dict[str, int] = {}
    for row, item in enumerate(items):
        question = item.partition("-")[0]
        before = rows.get(question)
        if (
            before is None
            or items[before] == question
            or (item != question and f1s[row] < f1s[before])
        ):
            rows[question] = row
    return list(rows.values())
