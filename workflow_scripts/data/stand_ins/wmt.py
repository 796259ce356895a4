"""Stand-in data for WMT: sentences in two languages with different word orders, in archives like upstream's.

A sentence of the first language is `subject verb object place .`. The second has the place after
the subject, and its words are spelt backwards, except numbers, names and words with a hyphen.
"""

import gzip
import random
from pathlib import Path

from workflow_scripts.data.sources.task_sources import write_tar

SUBJECTS = [
    "the commission",
    "the council",
    "a member",
    "the report",
    "Mr. Smith",
    "the well-known agency",
]
VERBS = ["supports", "rejects", "prepares", "discusses", "welcomes", "delays"]
OBJECTS = ["the proposal", "the budget", "3,5 million", "an agreement", "the vote", "new rules"]
PLACES = ["in June", "in Vienna", "at the summit", "on Monday", "(again)", "this year"]
LINES, SEGMENTS = 700, 60

Files = dict[str, str]  # language -> name in the archive


def write_wmt(
    folder: Path, corpora: list[tuple[str, Files]], test: tuple[str, Files]
) -> dict[str, Path]:
    """Write archives with aligned lines for each corpus and SGML for the test set.

    Returns archive name -> path.
    """
    rng = random.Random("wmt stand-in")
    archives: dict[str, dict[str, bytes]] = {}
    for archive, files in corpora:
        add_files(
            archives.setdefault(archive, {}),
            files,
            [generate_sentence(rng) for _ in range(LINES)],
            "{1}",
        )
    add_files(
        archives.setdefault(test[0], {}),
        test[1],
        [generate_sentence(rng) for _ in range(SEGMENTS)],
        '<seg id="{0}">{1}</seg>',
    )
    paths = {}
    for archive, content in archives.items():
        paths[archive] = folder / archive.replace("/", "-")
        packed = {
            name: gzip.compress(text, mtime=0) if name.endswith(".gz") else text
            for name, text in content.items()
        }
        write_tar(paths[archive], "w:gz" if archive.endswith("gz") else "w", packed)
    return paths


def add_files(
    content: dict[str, bytes], files: Files, pairs: list[dict[str, str]], form: str
) -> None:
    """Add a file of each language to the content of an archive.

    Every language but English gets the second side.
    """
    for language, name in files.items():
        side = "first" if language == "en" else "second"
        lines = [form.format(number, pair[side]) for number, pair in enumerate(pairs, start=1)]
        content[name] = "".join(f"{line}\n" for line in lines).encode()


def generate_sentence(rng: random.Random) -> dict[str, str]:
    """Generate a sentence in both languages."""
    subject, verb, thing, place = (
        rng.choice(words) for words in (SUBJECTS, VERBS, OBJECTS, PLACES)
    )
    words = f"{subject} {place} {verb} {thing}".split()
    second = " ".join(word[::-1] if word.isalpha() and word.islower() else word for word in words)
    return {"first": f"{subject} {verb} {thing} {place} .", "second": f"{second} ."}
