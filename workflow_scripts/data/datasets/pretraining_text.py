"""Text for the pre-training of small models, as tokens of a small tokenizer that is trained on it.

The documents: definitions of WordNet with their word, in several FORMS; its usage examples; sentences of WikiText-2;
the training sentences of SST. No definition or sentence of a validation or test item of the inverse dictionary (split
either way) or of SST is inside, and no text that contains a longer one of them.

Options of `prepare`, besides those of `inverse_dictionary.DictionaryOptions` (which must be those of the inverse
dictionary tasks, since they say which items there are):

tokenizer: `bpe` (byte-level, as GPT-2's) or `unigram` (as Gemma's).
vocabulary_size: of the tokenizer.
bare_words: answers must be one token without a space before them, which they rarely are in running text; so the answers
    to all items (of any split) stand bare in the text that the tokenizer, not the model, is trained on: so many times
    each.
valid_fraction: share of each kind of documents in the split `valid`; equal texts are in one split.

Splits: `train`, `valid`. Extra file: `tokenizer.json`.
"""

import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from workflow_scripts.common.validation import checked
from workflow_scripts.data.datasets import sst
from workflow_scripts.data.datasets.inverse_dictionary import (
    EXAMPLES,
    DictionaryOptions,
    Item,
    clean,
    definition,
    dictionary,
    find_items,
    held_out,
    topic_words,
)
from workflow_scripts.data.formats.lines import numbered_lines
from workflow_scripts.data.formats.wordnet import WordNet
from workflow_scripts.data.prepared import TableDataset

WHERE = "options of workflow_scripts.data.datasets.pretraining_text"
WIKITEXT = ("wikitext2/valid.txt", "wikitext2/test.txt")
SEED = 42
# The last is how the models are asked later; it is of the cleaned definition, as there.
FORMS = ["{word}: {gloss}", "{gloss}: {word}", '"{word}" means {gloss}', '{content} is called a "{word}"']
LONG = 6  # words: shorter definitions, such as `a small town`, may be part of other texts
QUOTED = re.compile(r'"([^"]+)"')
UNTOKENISED = [
    (re.compile(pattern), replacement)
    for pattern, replacement in [
        (r" @([-,.])@ ", r"\1"),
        (r" ([.,;:!?%)\]}])", r"\1"),
        (r"([(\[{$]) ", r"\1"),
        (r" (n't|'(?:s|re|ve|ll|d|m))\b", r"\1"),
        (r'" ([^"]*?) ?"', r'"\1"'),
        (r"\s+", " "),
    ]
]


class Options(DictionaryOptions):
    """See the module's docstring."""

    tokenizer: Literal["bpe", "unigram"]
    vocabulary_size: Annotated[int, Field(gt=300)]
    bare_words: Annotated[int, Field(ge=0)] = 20
    valid_fraction: Annotated[float, Field(gt=0, lt=1)] = 0.02


class Document(NamedTuple):
    """`key` is what makes two documents one text, such as the definition of both."""

    source: str
    key: str
    text: str


def prepare(options: dict[str, Any], sources: dict[str, Path]) -> TableDataset:
    """The splits train and valid, and the tokenizer. Raises UserError for wrong options or malformed sources."""
    from workflow_scripts.data.formats import tokenizer_training

    settings = checked(Options, options, WHERE)
    wordnet, notes = dictionary(settings, sources)
    items = find_items(wordnet, settings.definienda)
    trees = sst.read(settings.origin, sources)
    reviews = {split: [sst.tidy(sentence) for _, sentence, _ in rows] for split, rows in trees.items()}
    held = HeldOut([item.content for item in held_out(items)] + reviews["valid"] + reviews["test"])
    documents = [
        *gloss_documents(wordnet, held_out(items), held),
        *(Document("sst", plain(text), text) for text in reviews["train"] if text not in held),
    ]
    for name in WIKITEXT:
        if name in sources:
            documents += [
                Document("wikitext", plain(text), text) for text in wikitext(sources[name]) if text not in held
            ]
    splits = split_up(documents, settings.valid_fraction)
    answers = Counter([item.label for item in items] + [sst.LABELS[kind] for _, _, kind in trees["train"]])
    bare = Counter({answer: times * settings.bare_words for answer, times in answers.items()})
    tokenizer = tokenizer_training.train(
        settings.tokenizer, settings.vocabulary_size, (document.text for document in splits["train"]), bare
    )
    tables = {}
    for split, chosen in splits.items():
        encoded = tokenizer.encode_batch_fast([document.text for document in chosen])
        tables[split] = {"source": [d.source for d in chosen], "ids": [row.ids for row in encoded]}
    notes += [
        *counts(tables),
        f"vocabulary of {tokenizer.get_vocab_size()}; {share_of_single(tokenizer, items)}",
        f"left out: what validation and test items say, and texts that contain an item's text of {LONG} or more words",
    ]
    protocol = "stand_in" if settings.origin == "stand_in" else "reduced"
    return TableDataset(tables, notes, protocol, {"tokenizer.json": tokenizer.to_str(pretty=True) + "\n"})


def counts(tables: dict[str, dict[str, list]]) -> list[str]:
    """One note per split: documents and tokens by source."""
    found = []
    for split, table in tables.items():
        rows, tokens = Counter(table["source"]), Counter()
        for source, ids in zip(table["source"], table["ids"], strict=True):
            tokens[source] += len(ids)
        found.append(
            f"{split}: " + ", ".join(f"{source} {rows[source]} documents, {tokens[source]} tokens" for source in rows)
        )
    return found


def share_of_single(tokenizer: Any, items: list[Item]) -> str:
    """How many of the inverse dictionary's words and items have an answer of one token."""
    labels = Counter(item.label for item in items)
    single = [label for label in labels if len(tokenizer.encode(label).ids) == 1]
    return (
        f"{len(single)} of {len(labels)} words of the inverse dictionary are one token without a space before them, "
        f"the answers of {sum(labels[label] for label in single)} of {len(items)} items"
    )


def plain(text: str) -> str:
    """Lower-case words without marks: equal for texts that say the same."""
    return " ".join(re.sub(r"[^\w\s]|_", "", text.lower()).split())


class HeldOut:
    """`text in held`: whether a text is one of the held-out ones, or contains one of at least LONG words."""

    def __init__(self, texts: list[str]):
        self.whole = {plain(text) for text in texts}
        self.by_start: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
        for text in sorted(self.whole):
            words = tuple(text.split())
            if len(words) >= LONG:
                self.by_start.setdefault(words[:LONG], []).append(words)

    def __contains__(self, text: str) -> bool:
        text = plain(text)
        words = tuple(text.split())
        return text in self.whole or any(
            words[i : i + len(inner)] == inner
            for i in range(len(words) - LONG + 1)
            for inner in self.by_start.get(words[i : i + LONG], ())
        )


def gloss_documents(wordnet: WordNet, held_items: list[Item], held: HeldOut) -> Iterator[Document]:
    """Every word of every synset with its definition, in one of the FORMS, and the synset's examples."""
    out, topics, rng = {item.synset for item in held_items}, topic_words(wordnet), random.Random(SEED)
    for synset in wordnet.synsets.values():
        gloss, content = definition(synset.gloss), clean(synset.gloss, topics)
        if synset.id in out or not content or gloss in held or content in held:
            continue
        for lemma in synset.lemmas:
            text = rng.choice(FORMS).format(word=lemma.replace("_", " "), gloss=gloss, content=content)
            if text not in held:
                yield Document("glosses", plain(content), text)
        rest = EXAMPLES.search(synset.gloss)
        for example in QUOTED.findall(synset.gloss[rest.start() :]) if rest else []:
            if example not in held:
                yield Document("examples", plain(example), example)


def wikitext(path: Path) -> Iterator[str]:
    """Paragraphs as usual text; without headings, and without the sentences in which a rare word is replaced."""
    for _, line in numbered_lines(path):
        if line.strip().startswith("="):
            continue
        sentences = [s for s in re.split(r"(?<= [.!?]) ", line.strip()) if "<unk>" not in s]
        text = " ".join(sentences)
        for pattern, replacement in UNTOKENISED:
            text = pattern.sub(replacement, text)
        if text:
            yield text


def split_up(documents: list[Document], valid_fraction: float) -> dict[str, list[Document]]:
    """train and valid: of each source, that share of its keys, rounded up, is in `valid` with all their documents."""
    rng, valid = random.Random(SEED), set()
    for source in dict.fromkeys(document.source for document in documents):
        keys = sorted({document.key for document in documents if document.source == source})
        valid |= set(rng.sample(keys, -int(-len(keys) * valid_fraction // 1)))
    return {
        "train": [document for document in documents if document.key not in valid],
        "valid": [document for document in documents if document.key in valid],
    }
