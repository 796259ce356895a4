"""Stand-in data for SST-2, with the words of SST's stand-in data: a mood word sets the label, and `not` inverts it."""

import random
from pathlib import Path

from workflow_scripts.data.stand_ins.sst import ADVERBS, ARTICLES, MOODS, SUBJECTS

ROWS = {"train": 700, "dev": 90}


def write_sst2(folder: Path, seed: int) -> dict[str, Path]:
    """Write train.tsv and dev.tsv, without a repeated phrase in both. Returns their paths by source name."""
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
