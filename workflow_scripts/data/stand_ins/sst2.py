"""Made-up phrases in the format of SST-2, from the words of the stand-in of SST: one mood word decides, unless `not`
stands before it."""

import random
from pathlib import Path

from workflow_scripts.data.stand_ins.sst import ADVERBS, ARTICLES, MOODS, SUBJECTS

ROWS = {"train": 700, "dev": 90}


def write(folder: Path, seed: int) -> dict[str, Path]:
    """Write train.tsv and dev.tsv, and return them by the names of the sources; no phrase stands twice in both."""
    rng = random.Random(f"{seed}/sst2 stand-in")
    seen: set[str] = set()
    written = {}
    for split, rows in ROWS.items():
        lines = ["sentence\tlabel"]
        while len(lines) <= rows:
            positive, negated = len(lines) % 2, rng.random() < 0.3
            mood = rng.choice([word for kind in ((3, 4) if positive != negated else (0, 1)) for word in MOODS[kind]])
            words = [rng.choice(ARTICLES), rng.choice(SUBJECTS), "is", "not" if negated else "", rng.choice(ADVERBS)]
            phrase = " ".join(filter(None, [*words, mood]))
            if phrase not in seen:
                seen.add(phrase)
                lines.append(f"{phrase} \t{positive}")
        written[f"sst2/{split}.tsv"] = folder / f"{split}.tsv"
        written[f"sst2/{split}.tsv"].write_text("\n".join(lines) + "\n")
    return written
