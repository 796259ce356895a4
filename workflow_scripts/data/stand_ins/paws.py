"""Stand-in data for PAWS: who did what to whom.

The word order matters in some pairs and not in others.
"""

import random
from pathlib import Path

from workflow_scripts.data.sources.task_sources import write_text_lines

DEV = "paws/paws_wiki_final_dev.noheader.tsv"
TEST = "paws/paws_wiki_final_test.noheader.tsv"
ROWS = {DEV: 500, TEST: 200}
PEOPLE = ["Anna", "Boris", "Clara", "David", "Edith", "Frank", "Greta", "Henry"]
PLACES = ["Athens", "Bergen", "Cairo", "Dublin", "Essen", "Florence"]
VERBS = {
    "met": "met",
    "taught": "was the teacher of",
    "followed": "came after",
    "married": "became the spouse of",
}
YEARS = range(1900, 1960)


def write_paws(folder: Path, seed: int) -> dict[str, Path]:
    """Write both files without a header line and without repeated pairs.

    Returns their paths by source name.
    """
    rng = random.Random(f"{seed}/paws stand-in")
    seen: set[tuple[str, str]] = set()
    files: dict[str, list[str]] = {name: [] for name in ROWS}
    for name, lines in files.items():
        while len(lines) < ROWS[name]:
            first, second, label = generate_pair(rng)
            if (first, second) not in seen:
                seen.add((first, second))
                lines.append(f"{len(lines) + 1}\t{first}\t{second}\t{label}")
    return write_text_lines(folder, files)


def generate_pair(rng: random.Random) -> tuple[str, str, int]:
    """Generate (sentence, sentence, 1 for a paraphrase, else 0).

    Swapping people changes the meaning, all else does not.
    """
    person, other = rng.sample(PEOPLE, 2)
    verb = rng.choice(sorted(VERBS))
    place = rng.choice(PLACES)
    year = rng.choice(YEARS)
    first = f"{person} {verb} {other} in {place} in {year} ."
    kind = rng.choice(["swapped", "swapped", "moved", "reworded", "both"])
    if kind == "swapped":
        return first, f"{other} {verb} {person} in {place} in {year} .", 0
    if kind == "moved":
        return first, f"{person} {verb} {other} in {year} in {place} .", 1
    if kind == "reworded":
        return first, f"{person} {VERBS[verb]} {other} in {place} in {year} .", 1
    return first, f"{other} {VERBS[verb]} {person} in {year} in {place} .", 0
