"""Stand-in data for BiRD: phrases of two words with related ones.

They are paired with their reversals, their parts and other phrases.
"""

import itertools
from pathlib import Path

from workflow_scripts.data.sources.task_sources import write_text_lines

HEADER = "pair\tterm1\tterm2\tterm2: unigram or bigram\tsource\trelation\trelatedness score\tpos"
# HowNet's stand-in data have all of these words except the last one of each list.
FIRST = ["goat", "otter", "pine", "reed", "farmer", "kitchen"]
SECOND = ["film", "story", "tent", "oar", "guide", "table"]


def write_bird(folder: Path) -> dict[str, Path]:
    """Write BiRD.txt and BiRD-ABBA.txt. Returns their paths by source name."""
    phrases = list(itertools.product(FIRST, SECOND))
    aligned = "PhraseTable_co-aligned"
    pairs = []
    reversals = []
    for position, (first, second) in enumerate(phrases):
        phrase = f"{first} {second}"
        # Scores follow a rule: the first word determines how related a phrase and its reversal are.
        reversal = f"{second} {first}"
        reversal_score = 0.3 + 0.1 * FIRST.index(first)
        reversals.append(
            format_row(phrase, reversal, "bigram", "Wikipedia_transposed", reversal_score)
        )
        part_score = 0.6 + 0.05 * SECOND.index(second)
        pairs.append(format_row(phrase, second, "unigram", aligned, part_score))
        _, other_second = phrases[(7 * position + 3) % len(phrases)]
        phrase_score = 0.2
        if other_second == second:
            phrase_score = 0.9
        other_phrase = f"{first} {other_second}"
        pairs.append(format_row(phrase, other_phrase, "bigram", aligned, phrase_score))
    files = {
        "bird/BiRD.txt": [HEADER, *reversals, *pairs],
        "bird/BiRD-ABBA.txt": [HEADER, *reversals],
    }
    return write_text_lines(folder, files)


def format_row(first: str, second: str, size: str, source: str, score: float) -> str:
    """Format a line of the columns in HEADER.

    size: `unigram` or `bigram`, of the second term.
    """
    pair = f"({first}, {second})"
    return "\t".join((pair, first, second, size, source, "None", f"{score:.3f}", "n-n"))
