"""Stand-in sememes, in the format of CAT's files.

They are of the words of the stand-in dictionary and film reviews. A noun has the sememes of its
kind and place (`goat`: animal, mountain), other words have one to three; function words share one,
as in HowNet.
"""

import pickle
from pathlib import Path

from workflow_scripts.data.stand_ins import sst, wordnet

FUNCTION_WORDS = [
    "the",
    "a",
    "an",
    "this",
    "that",
    "is",
    "in",
    "of",
    "and",
    "with",
    "on",
    "to",
    "it",
    "for",
    "from",
]
MOODS = ["negative", "weakly negative", "plain", "weakly positive", "positive"]
OTHERS = {
    "run": ["move", "fast"],
    "creep": ["move", "quiet"],
    "jump": ["move", "upwards"],
    "cold": ["temperature", "little"],
    "bright": ["light", "much"],
    "soon": ["time", "little"],
    "small": ["size", "little"],
    "large": ["size", "much"],
    "young": ["age", "little"],
    "old": ["age", "much"],
    "mountain-dwelling": ["place", "mountain"],
    "small thing": ["size", "little", "thing"],
}


def list_compositions() -> dict[str, list[str]]:
    """Return the names of each word's sememes, each once."""
    words = {word: ["FuncWord"] for word in FUNCTION_WORDS}
    for kind, nouns in wordnet.NOUNS.items():
        words[kind] = [kind]
        for noun, place in zip(nouns, wordnet.PLACES, strict=True):
            words[noun] = [kind, place.split("-")[0]]
    for mood, adjectives in sst.MOODS.items():
        for adjective in adjectives:
            words[adjective] = ["quality", MOODS[mood]]
    for subject in sst.SUBJECTS:
        for noun in subject.split():
            words[noun] = ["art", "story"]
    return words | OTHERS


def write_sememes(folder: Path) -> dict[str, Path]:
    """Write `HowNet.idx` and `sememe.idx`. Returns their paths by source name."""
    numbers: dict[str, int] = {}  # by the name of a sememe, in order of appearance
    words = {}
    for word, sememes in list_compositions().items():
        words[word] = [numbers.setdefault(name, len(numbers)) for name in sememes]
    names = {number: name for name, number in numbers.items()}
    files = {"HowNet.idx": words, "sememe.idx": names}
    for file, content in files.items():
        (folder / file).write_bytes(pickle.dumps(content, protocol=4))
    return {f"sememes/{file}": folder / file for file in files}
