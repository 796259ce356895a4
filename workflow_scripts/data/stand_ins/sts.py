"""Stand-in data for the STS benchmark, from two sources.

A score counts equal subjects, verbs and places.
"""

import random
from pathlib import Path

from workflow_scripts.data.sources.task_sources import write_text_lines

ROWS = {"train": 400, "dev": 80, "test": 120}
WORDS = {
    "images": (
        ["A dog", "A child", "The man", "Two women"],
        ["runs", "sits", "jumps"],
        ["on the grass", "in the snow"],
    ),
    "MSRvid": (
        ["A cat", "A boy", "The cook", "Two men"],
        ["eats", "sings", "dances"],
        ["at a table", "on the stage"],
    ),
}
WORTH = (2.0, 2.0, 1.0)  # points for equal subjects, verbs and places


def write_sts(folder: Path, seed: int) -> dict[str, Path]:
    """Write sts-{train,dev,test}.csv. Returns their paths by source name."""
    rng = random.Random(f"{seed}/sts stand-in")
    files: dict[str, list[str]] = {}
    for part, rows in ROWS.items():
        lines = []
        for row in range(rows):
            source = ("images", "MSRvid")[row % 2]
            first = [rng.choice(words) for words in WORDS[source]]
            second = [rng.choice(words) for words in WORDS[source]]
            score = 0.0
            for worth, first_word, second_word in zip(WORTH, first, second, strict=True):
                if first_word == second_word:
                    score += worth
            cells = ["main-captions", source, "2012", f"{row:04}", f"{score:.3f}"]
            cells += [f"{' '.join(first)}.", f"{' '.join(second)}."]
            lines.append("\t".join(cells))
        files[f"stsb/sts-{part}.csv"] = lines
    return write_text_lines(folder, files)
