"""Stand-in dictionary in the format of wndb(5WN): a few words with many senses.

They are identified by parts of definitions. Kind and place define a noun (an animal of the
mountains is always a `goat`), the manner another word. There are also cases that are difficult for
readers, and synonyms of words of these definitions and of the stand-in reviews (`sst`).
"""

import random
from itertools import permutations, product
from pathlib import Path
from typing import NamedTuple

SENSES = 14
LICENCE = "  1 Example entries in the format of WordNet: no dictionary.  \n"


class PartOfSpeech(NamedTuple):
    """How words are written: their letter, sense type, and number in lexnames."""

    letter: str
    sense_type: int
    lexname: int


FILES = {
    "noun": PartOfSpeech("n", 1, 2),
    "verb": PartOfSpeech("v", 2, 3),
    "adj": PartOfSpeech("a", 3, 0),
    "adv": PartOfSpeech("r", 4, 1),
}
LEXNAMES = "00\tadj.all\t3\n01\tadv.all\t4\n02\tnoun.all\t1\n03\tverb.all\t2\n"
PLACES = ["mountain-dwelling", "riverside", "desert", "farmyard"]
NOUNS = {
    "animal": ["goat", "otter", "camel", "hen"],
    "plant": ["pine", "reed", "palm", "oats"],
    "tool": ["pick", "oar", "tent", "plough"],
    "person": ["guide", "angler", "nomad", "farmer"],
}
SIZES = ["small", "large", "full-grown", "young", "slow-moving", "well-known"]
ENDINGS = [
    "that is seldom seen",
    "of the old world",
    "with grey-brown marks",
    "often painted",
    "found in summertime",
]
OTHERS = {
    "verb": ("move {} {}", {"run": "speedily", "creep": "noiselessly", "jump": "upwards"}),
    "adj": ("having {} {}", {"cold": "little warmth", "bright": "much light"}),
    "adv": ("in a manner {} {}", {"soon": "without delay"}),
}
MANNERS = [
    "on land",
    "at nightfall",
    "in the open",
    "before sunrise",
    "among others",
    "over and over",
    "unexpectedly",
]
# Synonyms of words in these definitions and in the stand-in reviews. Synonyms of a mood word have
# the same mood.
SYNONYMS = {
    "noun": {
        "a living thing that moves": ["animal", "beast", "creature"],
        "a living thing that grows": ["plant", "herb"],
        "a thing to work with": ["tool", "implement"],
        "a human being": ["person", "individual"],
        "a dry country": ["desert", "wasteland"],
        "the warm months": ["summertime", "summer"],
        "a coloured place": ["mark", "spot"],
        "a series of pictures that move": ["film", "movie", "motion_picture"],
        "what is told": ["story", "tale"],
        "many leaves between two covers": ["book", "volume"],
        "sounds in time": ["music", "melody"],
    },
    "verb": {"lay colours on": ["paint", "colour"]},
    "adj": {
        "of much size": ["large", "big"],
        "of no great size": ["small", "tiny"],
        "of few years": ["young", "youthful"],
        "of many years": ["old", "aged"],
        "causing fear": ["dreadful", "appalling"],
        "without interest": ["dull", "tiresome", "boring"],
        "as most are": ["ordinary", "standard", "usual"],
        "giving joy": ["charming", "enjoyable", "pleasant"],
        "of the best kind": ["brilliant", "superb", "splendid"],
    },
    "adv": {"and nothing more": ["simply", "merely"], "without doubt": ["certainly", "surely"]},
}
EXAMPLES = [
    '; "they spoke of it for hours"',
    '; "nobody had expected it"; "it came to nothing"',
    "",
    "",
]


class Entry(NamedTuple):
    """A synset, and whether its gloss starts with the topic domain."""

    lemmas: list[str]
    gloss: str
    topic: bool = False


def write_wordnet(folder: Path) -> dict[str, Path]:
    """Write a dictionary folder, with lexnames and index.sense.

    Returns it by the source name of the archive.
    """
    entries = make_entries()
    count_lines: list[str] = []
    sense_lines: list[str] = []
    for part in FILES:
        data, senses = format_data_file(part, entries[part])
        (folder / f"data.{part}").write_text(data, encoding="utf-8")
        (folder / f"index.{part}").write_text(format_index_file(part, senses), encoding="utf-8")
        (folder / f"{part}.exc").write_text("", encoding="utf-8")
        for lemma, offsets in senses.items():
            for i, offset in enumerate(offsets):
                key = f"{lemma}%{FILES[part].sense_type}:{FILES[part].lexname:02d}:{i:02d}::"
                number = i + 1  # of the sense
                count = 0  # in tagged texts; only words with SENSES senses are frequent
                if len(offsets) == SENSES:
                    count = SENSES - i
                    count_lines.append(f"{key} {number} {count}\n")
                sense_lines.append(f"{key} {offset} {number} {count}\n")
    (folder / "cntlist.rev").write_text("".join(sorted(count_lines)), encoding="utf-8")
    (folder / "index.sense").write_text("".join(sorted(sense_lines)), encoding="utf-8")
    (folder / "lexnames").write_text(LEXNAMES, encoding="utf-8")
    return {"wordnet/wordnet-3.0-dict.tar.xz": folder}


def format_data_file(part: str, entries: list[Entry]) -> tuple[str, dict[str, list[str]]]:
    """Format data.<part>. Also returns the offsets of each lemma's senses, in their order."""
    letter, _sense_type, lexname = FILES[part]
    topic_offset = f"{len(LICENCE):08d}"  # of the first entry of nouns, the topic domain
    data = LICENCE
    senses: dict[str, list[str]] = {}
    for entry in entries:
        offset = f"{len(data):08d}"
        words = ""
        for lemma in entry.lemmas:
            offsets = senses.setdefault(lemma.split("(")[0].lower(), [])
            words += f"{lemma} {len(offsets):x} "  # the sense's number in the keys, in hexadecimal
            offsets.append(offset)
        pointers = "000"
        if entry.topic:
            pointers = f"001 ;c {topic_offset} n 0000"
        frames = ""
        if part == "verb":
            frames = " 01 + 02 00"
        data += f"{offset} {lexname:02d} {letter} {len(entry.lemmas):02x} {words}{pointers}{frames}"
        data += f" | {entry.gloss}  \n"
    return data, senses


def format_index_file(part: str, senses: dict[str, list[str]]) -> str:
    """Format index.<part> from the offsets of each lemma's senses.

    A line is `lemma pos synset_cnt p_cnt sense_cnt tagsense_cnt offset...` as in wndb(5WN), without
    pointer symbols; readers do not use the last count, so it is 0.
    """
    n_pointer_symbols = 0
    n_tagged_senses = 0
    index = LICENCE
    for lemma in sorted(senses):
        offsets = senses[lemma]
        n_senses = len(offsets)
        counts = f"{n_senses} {n_pointer_symbols} {n_senses} {n_tagged_senses}"
        index += f"{lemma} {FILES[part].letter} {counts} {' '.join(offsets)}  \n"
    return index


def make_entries() -> dict[str, list[Entry]]:
    """Return part of speech -> entries, without repeated definitions."""
    rng = random.Random("wordnet stand-in")
    entries = {"noun": make_nouns(rng)}
    for part in OTHERS:
        entries[part] = make_others(part, rng)
    # Without counts, so that they are never answers. Last, so that they do not change the offsets
    # of other entries.
    for part, synsets in SYNONYMS.items():
        entries[part] += [Entry(lemmas, gloss) for gloss, lemmas in synsets.items()]
    return entries


def make_others(part: str, rng: random.Random) -> list[Entry]:
    """Return the entries of verbs, adjectives or adverbs, with several senses of each word."""
    frame, words = OTHERS[part]
    entries = []
    for word, manner in words.items():
        for first, second in rng.sample(list(permutations(MANNERS, 2)), SENSES):
            remark = ""
            lemma = word
            if part == "adj":
                remark = "(usually followed by `to') "
                if rng.random() < 0.3:
                    lemma = f"{word}(p)"
            example = rng.choice(EXAMPLES)
            gloss = f"{remark}{frame.format(manner, first)}, {second}{example}"
            entries.append(Entry([lemma], gloss))
    return entries


def make_nouns(rng: random.Random) -> list[Entry]:
    """Return the entries of nouns; the first is the topic domain."""
    nouns = [Entry(["craft"], "the work of the hands")]  # the topic domain
    for kind, words in NOUNS.items():
        for place, word in zip(PLACES, words, strict=True):
            for size, ending in rng.sample(list(product(SIZES, ENDINGS)), SENSES):
                with_size = f"{size.split('-')[0]}_{word}"
                lemmas = rng.choice([[word], [word, with_size], [f"old_{word}", word]])
                gloss = f"a {size} {place} {kind} {ending}{rng.choice(EXAMPLES)}"
                if kind == "tool":
                    nouns.append(Entry(lemmas, f"(craft) {gloss}", topic=True))
                else:
                    nouns.append(Entry(lemmas, gloss))
    # Words without counts.
    nouns += [Entry([f"{size.split('-')[0]}_thing"], f"a {size} thing") for size in SIZES]
    return nouns
