"""Stand-in data for BiRD: phrases of two words, paired with their reversals, their parts and other phrases."""

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
    every, reversals = [], []
    for position, (first, second) in enumerate(phrases):
        phrase, (_, last) = f"{first} {second}", phrases[(7 * position + 3) % len(phrases)]
        # Scores follow a rule: the first word determines how related a phrase and its reversal are.
        score = 0.3 + 0.1 * FIRST.index(first)
        reversals.append((phrase, f"{second} {first}", "bigram", "Wikipedia_transposed", score))
        every.append(
            (phrase, second, "unigram", "PhraseTable_co-aligned", 0.6 + 0.05 * SECOND.index(second))
        )
        score = 0.2 if last != second else 0.9
        every.append((phrase, f"{first} {last}", "bigram", "PhraseTable_co-aligned", score))
    files = {"bird/BiRD.txt": reversals + every, "bird/BiRD-ABBA.txt": reversals}
    row = "({0}, {1})\t{0}\t{1}\t{2}\t{3}\tNone\t{4:.3f}\tn-n"
    return write_text_lines(
        folder, {name: [HEADER, *(row.format(*r) for r in rows)] for name, rows in files.items()}
    )
