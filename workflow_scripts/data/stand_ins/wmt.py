"""Stand-in data for WMT, in archives like upstream's.

They are sentences in two languages with different word orders. A sentence of the first language is
`subject verb object place .`. The second has the place after the subject, and its words are spelt
backwards, except numbers, names and words with a hyphen.
"""

import gzip
import random
from pathlib import Path
from typing import NamedTuple

from workflow_scripts.data.sources.task_sources import TarMode, write_tar

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
LINES = 700  # of a corpus
SEGMENTS = 60  # of the test set

Files = dict[str, str]  # language -> name in the archive


class Translation(NamedTuple):
    """A sentence in both languages."""

    first: str
    second: str


def write_wmt(
    folder: Path, corpora: list[tuple[str, Files]], test: tuple[str, Files]
) -> dict[str, Path]:
    """Write archives with aligned lines for each corpus and SGML for the test set.

    Returns archive name -> path.
    """
    rng = random.Random("wmt stand-in")
    archives: dict[str, dict[str, bytes]] = {}
    for archive, files in corpora:
        sentences = [generate_sentence(rng) for _ in range(LINES)]
        add_files(archives.setdefault(archive, {}), files, sentences, "{1}")
    archive, files = test
    sentences = [generate_sentence(rng) for _ in range(SEGMENTS)]
    add_files(archives.setdefault(archive, {}), files, sentences, '<seg id="{0}">{1}</seg>')
    paths = {}
    for archive, contents in archives.items():
        for name, content in contents.items():
            if name.endswith(".gz"):
                contents[name] = gzip.compress(content, mtime=0)
        mode: TarMode = "w:gz" if archive.endswith("gz") else "w"
        paths[archive] = folder / archive.replace("/", "-")
        write_tar(paths[archive], mode, contents)
    return paths


def add_files(
    contents: dict[str, bytes], files: Files, sentences: list[Translation], form: str
) -> None:
    """Add a file of each language to `contents`, the files of an archive by name.

    Every language but English gets the second side. form: the format of a line, with its number as
    {0} and its text as {1}.
    """
    for language, name in files.items():
        lines = []
        for number, sentence in enumerate(sentences, start=1):
            text = sentence.second
            if language == "en":
                text = sentence.first
            lines.append(form.format(number, text) + "\n")
        contents[name] = "".join(lines).encode()


def generate_sentence(rng: random.Random) -> Translation:
    """Generate a sentence in both languages."""
    subject = rng.choice(SUBJECTS)
    verb = rng.choice(VERBS)
    thing = rng.choice(OBJECTS)
    place = rng.choice(PLACES)
    words = []
    for word in f"{subject} {place} {verb} {thing}".split():
        if word.isalpha() and word.islower():
            word = word[::-1]
        words.append(word)
    return Translation(f"{subject} {verb} {thing} {place} .", f"{' '.join(words)} .")
