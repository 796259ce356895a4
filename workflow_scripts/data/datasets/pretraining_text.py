"""Pre-training text for small models, as tokens of a small tokenizer trained on it.

The documents are WordNet definitions with their word, in several FORMS; WordNet's usage examples; text of WikiText-2;
training sentences of SST. Validation and test items of SST and of the inverse dictionary (split by item or by word) are
excluded, and so are texts that contain the text of such an item with at least LONG words.

Options of `prepare`, in addition to `inverse_dictionary.DictionaryOptions`, which must be equal to those of the inverse
dictionary tasks, because they define the items:

tokenizer: `bpe` (byte-level, like GPT-2's) or `unigram` (like Gemma's).
vocabulary_size: number of tokens of the tokenizer.
bare_words: answers must be one token without a space before them, which is rare in running text. So the training text
    of the tokenizer (not of the model) gets this many bare copies of the answer of each item, of all splits.
valid_fraction: share of each kind of documents in the split `valid`; equal texts are in the same split.

Splits: `train`, `valid`. Extra file: `tokenizer.json`.
"""

import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from workflow_scripts.common.validation import parse_as
from workflow_scripts.data.datasets import sst
from workflow_scripts.data.datasets.inverse_dictionary import (
    EXAMPLES,
    DictionaryOptions,
    Item,
    clean_definition,
    collect_topic_words,
    find_items,
    load_dictionary,
    select_held_out_items,
    strip_examples,
)
from workflow_scripts.data.formats.lines import read_numbered_lines
from workflow_scripts.data.formats.wordnet import WordNet
from workflow_scripts.data.prepared import TableDataset

WHERE = "options of workflow_scripts.data.datasets.pretraining_text"
WIKITEXT = ("wikitext2/valid.txt", "wikitext2/test.txt")
SEED = 42
# The last form is the prompt of the inverse dictionary tasks, with the cleaned definition that they use.
FORMS = ["{word}: {gloss}", "{gloss}: {word}", '"{word}" means {gloss}', '{content} is called a "{word}"']
LONG = 6  # words; shorter definitions, such as `a small town`, may occur inside other texts
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
    """A text for pre-training. Documents with equal `key`, e.g. the same definition, must be in the same split."""

    source: str
    key: str
    text: str


def prepare(options: dict[str, Any], sources: dict[str, Path]) -> TableDataset:
    """Prepare the splits and the tokenizer. Raises UserError for wrong options or malformed sources."""
    from workflow_scripts.data.formats import tokenizer_training

    settings = parse_as(Options, options, WHERE)
    wordnet, notes = load_dictionary(settings, sources)
    items = find_items(wordnet, settings.definienda)
    trees = sst.read_sst(settings.origin, sources)
    reviews = {split: [sst.clean_sentence(sentence) for _, sentence, _ in rows] for split, rows in trees.items()}
    held = HeldOutTexts([item.content for item in select_held_out_items(items)] + reviews["valid"] + reviews["test"])
    documents = [
        *iterate_gloss_documents(wordnet, select_held_out_items(items), held),
        *(Document("sst", remove_punctuation(text), text) for text in reviews["train"] if text not in held),
    ]
    paragraphs = (text for name in WIKITEXT if name in sources for text in iterate_wikitext_paragraphs(sources[name]))
    documents += [Document("wikitext", remove_punctuation(text), text) for text in paragraphs if text not in held]
    splits = split_documents(documents, settings.valid_fraction)
    answers = Counter([item.label for item in items] + [sst.LABELS[kind] for _, _, kind in trees["train"]])
    bare = Counter({answer: times * settings.bare_words for answer, times in answers.items()})
    tokenizer = tokenizer_training.train_tokenizer(
        settings.tokenizer, settings.vocabulary_size, (document.text for document in splits["train"]), bare
    )
    tables = {}
    for split, chosen in splits.items():
        encoded = tokenizer.encode_batch_fast([document.text for document in chosen])
        tables[split] = {"source": [d.source for d in chosen], "ids": [row.ids for row in encoded]}
    notes += [
        *describe_sizes(tables),
        f"vocabulary of {tokenizer.get_vocab_size()}; {describe_single_tokens(tokenizer, items)}",
        f"left out: what validation and test items say, and texts that contain an item's text of {LONG} or more words",
    ]
    protocol = "stand_in" if settings.origin == "stand_in" else "reduced"
    return TableDataset(tables, notes, protocol, {"tokenizer.json": tokenizer.to_str(pretty=True) + "\n"})


def describe_sizes(tables: dict[str, dict[str, list]]) -> list[str]:
    """Format one note per split, with the documents and tokens of each source."""
    found = []
    for split, table in tables.items():
        rows, tokens = Counter(table["source"]), Counter()
        for source, ids in zip(table["source"], table["ids"], strict=True):
            tokens[source] += len(ids)
        found.append(
            f"{split}: " + ", ".join(f"{source} {rows[source]} documents, {tokens[source]} tokens" for source in rows)
        )
    return found


def describe_single_tokens(tokenizer: Any, items: list[Item]) -> str:
    """Format a note on how many words and items of the inverse dictionary have an answer of one token."""
    labels = Counter(item.label for item in items)
    single = [label for label in labels if len(tokenizer.encode(label).ids) == 1]
    return (
        f"{len(single)} of {len(labels)} words of the inverse dictionary are one token without a space before them, "
        f"the answers of {sum(labels[label] for label in single)} of {len(items)} items"
    )


def remove_punctuation(text: str) -> str:
    """Normalise a text to lower-case words without punctuation, for comparison."""
    return " ".join(re.sub(r"[^\w\s]|_", "", text.lower()).split())


class HeldOutTexts:
    """Held-out texts. `text in held`: a text equals a held-out one, or contains one of at least LONG words."""

    def __init__(self, texts: list[str]):
        self.whole = {remove_punctuation(text) for text in texts}
        self.by_start: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
        for text in sorted(self.whole):
            words = tuple(text.split())
            if len(words) >= LONG:
                self.by_start.setdefault(words[:LONG], []).append(words)

    def __contains__(self, text: str) -> bool:
        text = remove_punctuation(text)
        words = tuple(text.split())
        return text in self.whole or any(
            words[i : i + len(inner)] == inner
            for i in range(len(words) - LONG + 1)
            for inner in self.by_start.get(words[i : i + LONG], ())
        )


def iterate_gloss_documents(wordnet: WordNet, held_items: list[Item], held: HeldOutTexts) -> Iterator[Document]:
    """Yield every word of a synset with its definition, in one of the FORMS, and its examples, if not held out."""
    out, topics, rng = {item.synset for item in held_items}, collect_topic_words(wordnet), random.Random(SEED)
    for synset in wordnet.synsets.values():
        gloss, content = strip_examples(synset.gloss), clean_definition(synset.gloss, topics)
        if synset.id in out or not content or gloss in held or content in held:
            continue
        for lemma in synset.lemmas:
            text = rng.choice(FORMS).format(word=lemma.replace("_", " "), gloss=gloss, content=content)
            if text not in held:
                yield Document("glosses", remove_punctuation(content), text)
        rest = EXAMPLES.search(synset.gloss)
        for example in QUOTED.findall(synset.gloss[rest.start() :]) if rest else []:
            if example not in held:
                yield Document("examples", remove_punctuation(example), example)


def iterate_wikitext_paragraphs(path: Path) -> Iterator[str]:
    """Yield detokenised paragraphs, without headings and without sentences that contain `<unk>`."""
    for _, line in read_numbered_lines(path):
        if line.strip().startswith("="):
            continue
        sentences = [s for s in re.split(r"(?<= [.!?]) ", line.strip()) if "<unk>" not in s]
        text = " ".join(sentences)
        for pattern, replacement in UNTOKENISED:
            text = pattern.sub(replacement, text)
        if text:
            yield text


def split_documents(documents: list[Document], valid_fraction: float) -> dict[str, list[Document]]:
    """Split into train and valid by key: of each source, `valid_fraction` of its keys, rounded up, is in `valid`."""
    rng, valid = random.Random(SEED), set()
    for source in dict.fromkeys(document.source for document in documents):
        keys = sorted({document.key for document in documents if document.source == source})
        valid |= set(rng.sample(keys, -int(-len(keys) * valid_fraction // 1)))
    return {
        "train": [document for document in documents if document.key not in valid],
        "valid": [document for document in documents if document.key in valid],
    }
