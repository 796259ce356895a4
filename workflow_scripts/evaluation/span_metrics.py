"""Exact match and F1 of answer spans, with SQuAD's normalisation (Rajpurkar et al. 2016)."""

import re
import string
from collections import Counter
from collections.abc import Sequence

MARKS = str.maketrans("", "", string.punctuation)
ARTICLES = re.compile(r"\b(?:a|an|the)\b")


def normalise_answer(text: str) -> str:
    """Convert to lower case; remove ASCII punctuation, English articles and repeated spaces."""
    without_marks = text.lower().translate(MARKS)
    without_articles = ARTICLES.sub(" ", without_marks)
    return " ".join(without_articles.split())


def compute_exact_match(predicted: str, answers: Sequence[str]) -> float:
    """Return 1 if the prediction equals a right answer after normalisation, else 0."""
    prediction = normalise_answer(predicted)
    return float(any(prediction == normalise_answer(answer) for answer in answers))


def compute_f1(predicted: str, answers: Sequence[str]) -> float:
    """Return the highest F1 (harmonic mean of word precision and recall) over the right answers."""
    words = normalise_answer(predicted).split()
    best = 0.0
    for answer in answers:
        right = normalise_answer(answer).split()
        common = (Counter(words) & Counter(right)).total()
        if common:
            best = max(best, 2 * common / (len(words) + len(right)))
    return best


def find_questions(items: Sequence[str]) -> list[str]:
    """Return the key of each item's question: its own, or that of which it is a variant."""
    keys = set(items)
    questions = []
    for item in items:
        question = item.partition("-")[0]
        questions.append(question if question in keys else item)
    return questions


def select_worst_variants(items: Sequence[str], f1s: Sequence[float]) -> list[int]:
    """Return, for each question of an adversarial set, the one row that counts.

    This is how the official code of Jia and Liang (2017) selects. `items` and `f1s` [rows] are the
    keys and the F1 of all rows. A variant's key is the question's key, `-` and the variant's name;
    the question must be among the items, else a dash is part of a key.
    The first variant with the lowest F1 counts; the unchanged question counts only if it has no
    variants. The rows are in the order in which their questions first occur.
    """
    row_of_question: dict[str, int] = {}
    for row, question in enumerate(find_questions(items)):
        item = items[row]
        if question not in row_of_question:
            row_of_question[question] = row
            continue
        row_so_far = row_of_question[question]
        is_unchanged_so_far = items[row_so_far] == question  # which any variant replaces
        is_worse_variant = item != question and f1s[row] < f1s[row_so_far]
        if is_unchanged_so_far or is_worse_variant:
            row_of_question[question] = row
    return list(row_of_question.values())
