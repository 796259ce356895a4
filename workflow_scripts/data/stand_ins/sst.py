"""Stand-in film reviews as bracketed trees in the format of SST: one mood word sets the label of the root."""

import random
from pathlib import Path

ROWS = {"train": 600, "dev": 90, "test": 90}
MOODS = {
    0: ["dreadful", "unwatchable", "insufferable", "appalling"],
    1: ["dull", "tiresome", "forgettable", "half-baked"],
    2: ["ordinary", "standard", "two-hour", "middling"],
    3: ["charming", "clever", "warm-hearted", "enjoyable"],
    4: ["brilliant", "unforgettable", "breathtaking", "superb"],
}
SUBJECTS = ["film", "movie", "comedy", "sequel", "documentary", "love story", "ghost story", "screenplay"]
ARTICLES = ["the", "this", "that"]
ADVERBS = ["really", "simply", "certainly", "again", "often"]
ENDINGS = ["from start to finish", "for its length", ", like the book", "-LRB- and it 's long -RRB-", "with new music"]


def write_sst(folder: Path) -> dict[str, Path]:
    """Write `train.txt`, `dev.txt` and `test.txt`, without a repeated sentence in all of them.

    Returns the folder, which is read like the archive, by the archive's source name.
    """
    rng = random.Random("sst stand-in")
    seen: set[str] = set()
    for file, rows in ROWS.items():
        lines: list[str] = []
        while len(lines) < rows:
            # Cycle through the classes, so that every file has equal shares of them.
            kind = len(lines) % len(MOODS)
            subject = build_leaves([rng.choice(ARTICLES), *rng.choice(SUBJECTS).split()])
            words = build_leaves(["is", *rng.sample(ADVERBS, rng.randint(0, 1))])
            ending = build_leaves([*rng.choice(["", *ENDINGS]).split(), "."])
            # Like `(3 (2 (2 the) (2 film)) (3 (2 is) (3 (3 charming) (2 .))))`.
            line = f"({kind} {subject} ({kind} {words} ({kind} ({kind} {rng.choice(MOODS[kind])}) {ending})))"
            if line not in seen:
                seen.add(line)
                lines.append(line)
        rng.shuffle(lines)
        (folder / f"{file}.txt").write_text("\n".join(lines) + "\n")
    return {"sst/trainDevTestTrees_PTB.zip": folder}


def build_leaves(words: list[str]) -> str:
    """Build a right-branching neutral tree over the words."""
    first = f"(2 {words[0]})"
    return first if len(words) == 1 else f"(2 {first} {build_leaves(words[1:])})"
