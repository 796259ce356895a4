"""Stand-in film reviews for SST (bracketed trees) and SST-2 (phrases).

One mood word sets the label.
"""

import random
from pathlib import Path

from workflow_scripts.data.sources.task_sources import write_text_lines

ROWS = {"train": 600, "dev": 90, "test": 90}
PHRASES = {"sst2/train.tsv": 700, "sst2/dev.tsv": 90}
MOODS = {  # by class, from very negative to very positive
    0: ["dreadful", "unwatchable", "insufferable", "appalling"],
    1: ["dull", "tiresome", "forgettable", "half-baked"],
    2: ["ordinary", "standard", "two-hour", "middling"],
    3: ["charming", "clever", "warm-hearted", "enjoyable"],
    4: ["brilliant", "unforgettable", "breathtaking", "superb"],
}
NEGATIVE_MOODS = [*MOODS[0], *MOODS[1]]
POSITIVE_MOODS = [*MOODS[3], *MOODS[4]]
SUBJECTS = [
    "film",
    "movie",
    "comedy",
    "sequel",
    "documentary",
    "love story",
    "ghost story",
    "screenplay",
]
ARTICLES = ["the", "this", "that"]
ADVERBS = ["really", "simply", "certainly", "again", "often"]
ENDINGS = [
    "from start to finish",
    "for its length",
    ", like the book",
    "-LRB- and it 's long -RRB-",
    "with new music",
]


def write_sst(folder: Path) -> dict[str, Path]:
    """Write the files of SST, without a repeated sentence.

    Returns their folder by the source name of the archive.
    """
    rng = random.Random("sst stand-in")
    seen: set[str] = set()
    for file, rows in ROWS.items():
        lines: list[str] = []
        while len(lines) < rows:
            # Cycle through the classes, so that every file has equal shares of them.
            line = generate_tree(rng, len(lines) % len(MOODS))
            if line not in seen:
                seen.add(line)
                lines.append(line)
        rng.shuffle(lines)
        write_text_lines(folder, {f"{file}.txt": lines})
    return {"sst/trainDevTestTrees_PTB.zip": folder}


def generate_tree(rng: random.Random, kind: int) -> str:
    """Generate a tree like `(3 (2 (2 the) (2 film)) (3 (2 is) (3 (3 charming) (2 .))))`.

    kind: the class of its root, 0 to 4.
    """
    subject = build_leaves([rng.choice(ARTICLES), *rng.choice(SUBJECTS).split()])
    verb = build_leaves(["is", *rng.sample(ADVERBS, rng.randint(0, 1))])
    ending = build_leaves([*rng.choice(["", *ENDINGS]).split(), "."])
    mood = rng.choice(MOODS[kind])
    return f"({kind} {subject} ({kind} {verb} ({kind} ({kind} {mood}) {ending})))"


def build_leaves(words: list[str]) -> str:
    """Build a right-branching neutral tree over the words."""
    first = f"(2 {words[0]})"
    if len(words) == 1:
        return first
    return f"(2 {first} {build_leaves(words[1:])})"


def write_sst2(folder: Path, seed: int) -> dict[str, Path]:
    """Write SST-2, without a repeated phrase. Returns the paths by source name."""
    rng = random.Random(f"{seed}/sst2 stand-in")
    seen: set[str] = set()
    files = {name: ["sentence\tlabel"] for name in PHRASES}
    for name, lines in files.items():
        while len(lines) <= PHRASES[name]:
            label = len(lines) % 2
            phrase = generate_review(rng, label == 1)
            if phrase not in seen:
                seen.add(phrase)
                lines.append(f"{phrase} \t{label}")
    return write_text_lines(folder, files)


def generate_review(rng: random.Random, is_positive: bool) -> str:
    """Generate a phrase whose meaning is positive or negative, as asked for.

    In 30% of the phrases, `not` comes before a mood word of the opposite polarity.
    """
    is_negated = rng.random() < 0.3
    has_positive_mood = is_positive
    if is_negated:
        has_positive_mood = not is_positive
    moods = NEGATIVE_MOODS
    if has_positive_mood:
        moods = POSITIVE_MOODS
    mood = rng.choice(moods)
    words = [rng.choice(ARTICLES), rng.choice(SUBJECTS), "is"]
    if is_negated:
        words.append("not")
    words += [rng.choice(ADVERBS), mood]
    return " ".join(words)
