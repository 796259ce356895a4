"""Inverse dictionary: predict a word from its definition in WordNet.

Splits: `train`, `valid`, `test` of 80%, 10% and 10%, sampled with the fixed seed 42, as in the
paper's code. Words that are not one token of a model's tokenizer are dropped when that model is
trained, not here.
"""

import random
import re
from collections import Counter
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import PositiveInt

from workflow_scripts.data.formats.wordnet import (
    Lexicon,
    WordNet,
    read_lexicon,
    read_wordnet,
    split_gloss,
)
from workflow_scripts.data.prepared import PromptItem, TableDataset, collect_columns
from workflow_scripts.data.sources.task_sources import DataOptions
from workflow_scripts.data.stand_ins import wordnet as stand_in

SOURCE = "wordnet/wordnet-3.0-dict.tar.xz"
SPLIT_SEED = 42
ONE_WORD = re.compile(r"[A-Za-z]{2,}")
TOPIC = re.compile(r"^\(([^()]*)\)\s*")
# Not inside of a word, as in `the former one(s)`.
PARENTHESES = re.compile(r"(?<!\w)\(([^()]*)\)(?!\w)")
JOINT = re.compile(r"--+|/|\s-\s")
MARK = re.compile(r"[^\w\s]|_")


class DictionaryOptions(DataOptions):
    """The dictionary, and how many most frequent words may be answers.

    Words are counted in WordNet's tagged texts. This replaces the paper's filter, words that are
    one token of the first LLaMA tokenizer.
    """

    definienda: PositiveInt = 2500


class Options(DictionaryOptions):
    """How items are split, and which are left out of all splits.

    split_by: `word` puts all items that share the word or the definition into one split; the paper
        splits by `item`.
    leave_out: `word_in_definition` are items whose definition holds their own word, or another form
        of it.
    """

    split_by: Literal["item", "word"] = "item"
    leave_out: Literal["nothing", "word_in_definition"] = "nothing"

    def list_splits(self) -> list[str]:
        """Return the names of the splits."""
        return ["train", "valid", "test"]


class Item(NamedTuple):
    """A definition without punctuation and its word.

    `synset` is the id of the synset in WordNet.
    """

    synset: str
    content: str
    label: str


def prepare(settings: Options, sources: dict[str, Path]) -> TableDataset:
    """Prepare the splits. Raises UserError for a missing dictionary."""
    items = find_items(load_dictionary(settings, sources), settings.definienda)
    splits = {}
    for split, positions in split_items(items, settings.split_by).items():
        splits[split] = [items[position] for position in positions]
    words = {item.label for item in items}
    n_with_own_word = sum(item.label in item.content.split() for item in items)
    notes = [
        f"{len(items)} items: one for each synset with a word among the {settings.definienda} most "
        "frequent ones of WordNet's tagged texts (in place of: one token of the LLaMA tokenizer) "
        "and a definition of two or more words",
        f"{len(words)} words; {n_with_own_word} definitions contain their own word",
        f"split by {settings.split_by} with seed {SPLIT_SEED}",
    ]
    described = {}
    if settings.leave_out == "word_in_definition":
        splits, counts = drop_own_words(splits, load_lexicon(settings, sources))
        described["left_out"] = {settings.leave_out: counts}
        of_splits = ", ".join(f"{count} of {split}" for split, count in counts.items())
        notes.append(
            f"left out after the split, since the definition holds a form of the word: {of_splits}"
        )
    rows: dict[str, list[PromptItem]] = {}
    for split, of_split in splits.items():
        rows[split] = []
        for item in of_split:
            key = f"{item.synset}-{item.label}"
            rows[split].append(PromptItem(key, item.content, item.label))
    tables = collect_columns(rows, PromptItem._fields)
    return TableDataset(tables, notes, "reduced", described=described)


def load_dictionary(settings: DictionaryOptions, sources: dict[str, Path]) -> WordNet:
    """Read the dictionary of the options. Raises UserError if it is missing."""
    with settings.open_sources(sources, stand_in.write_wordnet) as files:
        return read_wordnet(settings.find_source(files, SOURCE))


def load_lexicon(settings: DictionaryOptions, sources: dict[str, Path]) -> Lexicon:
    """Read the base forms of the dictionary's words. Raises UserError if it is missing."""
    with settings.open_sources(sources, stand_in.write_wordnet) as files:
        return read_lexicon(settings.find_source(files, SOURCE))


def drop_own_words(
    splits: dict[str, list[Item]], lexicon: Lexicon
) -> tuple[dict[str, list[Item]], dict[str, int]]:
    """Drop the items whose definition holds a form of their word.

    Returns the splits, and how many items are dropped from each.
    """
    kept = {}
    counts = {}
    for split, items in splits.items():
        kept[split] = [item for item in items if not has_own_word(item, lexicon)]
        counts[split] = len(items) - len(kept[split])
    return kept, counts


def has_own_word(item: Item, lexicon: Lexicon) -> bool:
    """Return whether a word of the definition is the item's word or has it as a base form.

    Its part of speech does not matter.
    """
    own_word = item.label.lower()
    words = set(item.content.lower().split())
    # Possessives have lost their apostrophe.
    words |= {word.removesuffix("s") for word in words}
    if own_word in words:
        return True
    for word in words:
        for part_of_speech in "nvar":
            if own_word in lexicon.find_base_forms(word, part_of_speech):
                return True
    return False


def find_items(wordnet: WordNet, definienda: int) -> list[Item]:
    """Return one item for each synset with a frequent word, in WordNet's order.

    Its definition must have two or more words. Frequent are the `definienda` one-word lemmas with
    the most occurrences, ties alphabetically. The item's word is the one used most often in this
    sense in the tagged texts; on a tie, WordNet's first.
    """
    totals: Counter[str] = Counter()
    for (lemma, _synset), times in wordnet.counts.items():
        if ONE_WORD.fullmatch(lemma):
            totals[lemma] += times
    by_frequency = sorted(totals, key=lambda lemma: (-totals[lemma], lemma))
    frequent = set(by_frequency[:definienda])
    topics = collect_topic_words(wordnet)
    items = []
    for synset in wordnet.synsets.values():
        words = []
        for lemma in synset.lemmas:
            if ONE_WORD.fullmatch(lemma) and lemma.lower() in frequent:
                words.append(lemma)
        if not words:
            continue
        content = clean_definition(synset.gloss, topics)
        if " " in content:
            label = max(words, key=lambda lemma: wordnet.counts.get((lemma.lower(), synset.id), 0))
            items.append(Item(synset.id, content, label))
    return items


def collect_topic_words(wordnet: WordNet) -> set[str]:
    """Return the names of WordNet's topic domains, such as law."""
    topics: set[str] = set()
    for synset in wordnet.synsets.values():
        topics.update(synset.topics)
    names = set()
    for topic in topics & wordnet.synsets.keys():
        for lemma in wordnet.synsets[topic].lemmas:
            names.add(lemma.replace("_", " ").lower())
    return names


def clean_definition(gloss: str, topics: set[str]) -> str:
    """Return the definition as plain words, e.g. `in law a formal claim and a demand`.

    Empty if no part of it is left.

    Parts between semicolons are joined by `and`. Topic domains (a whole part, or parentheses at its
    start) come first. What else is in parentheses is omitted, as are usage remarks and parts that
    start with a dash. Punctuation is deleted (`cold-blooded`: `coldblooded`).
    """
    topics_of_gloss = []
    kept_parts = []
    definition, _examples = split_gloss(gloss)
    for untrimmed_part in remove_parentheses(definition, topics).split(";"):
        part = untrimmed_part.strip()
        if part.startswith("-") or "followed by" in part:
            continue
        topic = TOPIC.match(part)
        if topic and topic[1].lower() in topics:
            topics_of_gloss.append(topic[1])
            part = part[topic.end() :]
        is_topic = part.strip("() ").lower() in topics
        if is_topic and (kept_parts or topics_of_gloss):
            topics_of_gloss.append(part)
        elif part:
            kept_parts.append(part.removeprefix("and "))
    if not kept_parts:
        return ""
    text = " ".join([*(f"in {name}" for name in topics_of_gloss), " and ".join(kept_parts)])
    without_marks = MARK.sub("", JOINT.sub(" ", text))
    return " ".join(without_marks.split())


def remove_parentheses(text: str, topics: set[str]) -> str:
    """Remove what is in parentheses, also nested ones.

    A topic at the start of a part between semicolons is kept.
    """

    def replace(match: re.Match[str]) -> str:
        """Return what replaces a pair of parentheses: itself for a topic, else a space."""
        before = match.string[: match.start()].rstrip()
        starts_part = not before or before.endswith(";")
        if starts_part and match[1].lower() in topics:
            return match[0]
        return " "

    shorter = PARENTHESES.sub(replace, text)
    if shorter == text:
        return text
    return remove_parentheses(shorter, topics)


def split_items(items: list[Item], by: str) -> dict[str, list[int]]:
    """Assign every item to one split. Returns split -> sorted positions of its items."""
    if by == "item":
        groups = [[position] for position in range(len(items))]
    else:
        groups = group_connected_items(items)
    random.Random(SPLIT_SEED).shuffle(groups)
    room = {"test": len(items) // 10, "valid": len(items) // 10, "train": len(items)}
    splits: dict[str, list[int]] = {"train": [], "valid": [], "test": []}
    for group in groups:
        # A group that is larger than the remaining room of a split goes to the next split.
        split = next(name for name in room if len(group) <= room[name])
        splits[split] += group
        room[split] -= len(group)
    return {name: sorted(positions) for name, positions in splits.items()}


def group_connected_items(items: list[Item]) -> list[list[int]]:
    """Group positions of items that share the word or the definition.

    They share it directly or through other items.
    """
    import numpy as np
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    # Each item is linked to the first with its word and to the first with its definition.
    first_with: dict[tuple[str, str], int] = {}
    same_word = []
    same_definition = []
    for position, item in enumerate(items):
        same_word.append(first_with.setdefault(("word", item.label.lower()), position))
        same_definition.append(
            first_with.setdefault(("definition", item.content.lower()), position)
        )
    size = len(items)
    links = np.array([[*range(size)] * 2, same_word + same_definition])
    graph = coo_array((np.ones(2 * size), links), shape=(size, size))
    _count, components = connected_components(graph)
    groups: dict[int, list[int]] = {}
    for position, component in enumerate(components.tolist()):
        groups.setdefault(component, []).append(position)
    return list(groups.values())


def select_held_out_items(items: list[Item]) -> list[Item]:
    """Return the items of `valid` or `test` of the split by item or of the split by word."""
    positions: set[int] = set()
    for by in ("item", "word"):
        splits = split_items(items, by)
        positions.update(splits["valid"], splits["test"])
    return [items[position] for position in sorted(positions)]
