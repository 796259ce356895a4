"""A dictionary, a list of stop words and a tagger of a few words, in the archives and formats of
the real ones.
"""

import json
from pathlib import Path

from tests.data.packing import pack

# pos, words, gloss. Adjectives come with the kinds that WordNet has: heads (a), satellites (s),
# markers of place.
SYNSETS = [
    ("n", ["dog", "domestic_dog", "Canis_familiaris"], "a tame animal that barks"),
    ("n", ["frump", "dog"], "a dull unattractive woman"),
    ("n", ["animal", "beast", "creature", "large_living_creature"], "a living thing that moves"),
    ("n", ["car", "auto", "motor-car", "machine"], "a motor vehicle with four wheels"),
    ("n", ["axis", "x_axis"], "a line about which a thing turns"),
    ("n", ["ax", "axe"], "a tool that cuts wood"),
    ("v", ["run", "operate"], "to make a motor or machine work"),
    ("v", ["run", "flee"], "to move away on foot"),
    ("v", ["dog", "chase"], "to go after a thing that moves"),
    ("a", ["big(a)", "large"], "above the average in size"),
    ("s", ["pleasant", "nice", "nice_the"], "giving joy to a person"),
    ("s", ["bad(p)", "awful"], "giving pain to a person"),
    ("r", ["fast", "quickly"], "at a high speed on foot"),
]
EXCEPTIONS = {"noun": ["axes ax axis"], "verb": ["ran run", "ate eat"], "adj": [], "adv": []}
TAGS = {
    "dog": "NN",
    "dogs": "NNS",
    "animal": "NN",
    "car": "NN",
    "axes": "NNS",
    "ran": "VBD",
    "runs": "VBZ",
}
TAGS |= {
    "big": "JJ",
    "pleasant": "JJ",
    "bad": "JJ",
    "fast": "RB",
    "the": "DT",
    "The": "DT",
    "Dog": "NN",
    ",": ",",
}


def data_files() -> dict[str, str]:
    """The dictionary's files by name, in the format of wndb(5WN)."""
    files = {}
    for pos, name in {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}.items():
        lines = ["  1 the licence, indented"]
        for number, (kind, words, gloss) in enumerate(SYNSETS):
            if {"s": "a"}.get(kind, kind) == pos:
                cells = " ".join(f"{word} 0" for word in words)
                lines.append(f"{number:08d} 03 {kind} {len(words):02x} {cells} 000 | {gloss}  ")
        files[f"data.{name}"] = "\n".join(lines) + "\n"
        files[f"{name}.exc"] = "".join(f"{line}\n" for line in EXCEPTIONS[name])
    return files


def write_sources(folder: Path) -> dict[str, Path]:
    """The three archives under their names in sources.yaml."""
    part = "averaged_perceptron_tagger/averaged_perceptron_tagger_eng"
    tagger = {
        "weights": {"bias": {"NN": 0.1}},
        "tagdict": TAGS,
        "classes": sorted(set(TAGS.values())),
    }
    return {
        "nltk/stopwords.zip": pack(
            folder / "stopwords.zip", {"stopwords/english": "the\nand\nof\nold\n"}
        ),
        "nltk/averaged_perceptron_tagger_eng.zip": pack(
            folder / "tagger.zip",
            {f"{part}.{name}.json": json.dumps(content) for name, content in tagger.items()},
        ),
        "wordnet/wordnet-3.0-dict.tar.xz": pack(
            folder / "dict.tar.xz", {f"wordnet/{name}": text for name, text in data_files().items()}
        ),
    }
