"""Stand-in data for the STS benchmark, from two sources: a score counts equal subjects, verbs and places."""

import random
from pathlib import Path

ROWS = {"train": 400, "dev": 80, "test": 120}
WORDS = {
    "images": (
        ["A dog", "A child", "The man", "Two women"],
        ["runs", "sits", "jumps"],
        ["on the grass", "in the snow"],
    ),
    "MSRvid": (["A cat", "A boy", "The cook", "Two men"], ["eats", "sings", "dances"], ["at a table", "on the stage"]),
}
WORTH = (2.0, 2.0, 1.0)  # points for equal subjects, verbs and places


def write_sts(folder: Path, seed: int) -> dict[str, Path]:
    """Write sts-{train,dev,test}.csv. Returns their paths by source name."""
    rng = random.Random(f"{seed}/sts stand-in")
    written = {}
    for part, rows in ROWS.items():
        lines = []
        for row in range(rows):
            source = ("images", "MSRvid")[row % 2]
            first, second = ([rng.choice(words) for words in WORDS[source]] for _ in range(2))
            score = sum(worth for worth, one, other in zip(WORTH, first, second, strict=True) if one == other)
            told = (" ".join(first) + ".", " ".join(second) + ".")
            lines.append("\t".join(("main-captions", source, "2012", f"{row:04}", f"{score:.3f}", *told)))
        written[f"stsb/sts-{part}.csv"] = folder / f"sts-{part}.csv"
        written[f"stsb/sts-{part}.csv"].write_text("\n".join(lines) + "\n")
    return written
