"""Pre-training text for small models, as tokens of a small tokenizer trained on it.

The documents are WordNet definitions with their word, in several FORMS; WordNet's usage examples;
text of WikiText-2; training sentences of SST. Validation and test items of SST and of the inverse
dictionary (split by item or by word) are excluded, and so are texts that contain the text of such
an item with at least SHORT words.
"""

import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from workflow_scripts.data.datasets import sst
from workflow_scripts.data.datasets.contamination import SHORT, NgramIndex
from workflow_scripts.data.datasets.inverse_dictionary import (
    DictionaryOptions,
    Item,
    clean_definition,
    collect_topic_words,
    find_items,
    load_dictionary,
    select_held_out_items,
)
from workflow_scripts.data.formats import wikitext
from workflow_scripts.data.formats.wordnet import WordNet, split_gloss
from workflow_scripts.data.prepared import TableDataset
from workflow_scripts.data.splits import split_by_key

SEED = 42
# The last form is the prompt of the inverse dictionary tasks, with the cleaned definition that they
# use.
FORMS = [
    "{word}: {gloss}",
    "{gloss}: {word}",
    '"{word}" means {gloss}',
    '{content} is called a "{word}"',
]


class Options(DictionaryOptions):
    """Options, of which those of `DictionaryOptions` must be equal to those of the inverse dictionary tasks.

    tokenizer: `bpe` (byte-level, like GPT-2's) or `unigram` (like Gemma's).
    bare_words: answers must be one token without a space before them, which is rare in running
        text. So the tokenizer (not the model) is trained on this many bare copies of the answer of
        each item, of all splits.
    valid_fraction: share of each kind of documents in the split `valid`; equal texts are in the
        same split.
    """

    tokenizer: Literal["bpe", "unigram"]
    vocabulary_size: Annotated[int, Field(gt=300)]
    bare_words: Annotated[int, Field(ge=0)] = 20
    valid_fraction: Annotated[float, Field(gt=0, lt=1)] = 0.02


class Document(NamedTuple):
    """A text for pre-training.

    Documents with equal `key`, e.g. the same definition, must be in the same split.
    """

    source: str
    key: str
    text: str


def prepare(settings: Options, sources: dict[str, Path]) -> TableDataset:
    """Prepare the splits and the tokenizer. Raises UserError for malformed sources."""
    from workflow_scripts.data.formats import tokenizer_training

    wordnet = load_dictionary(settings, sources)
    items = find_items(wordnet, settings.definienda)
    trees = sst.read_sst(settings, sources)
    reviews = {
        split: [sst.clean_sentence(sentence) for _, sentence, _ in rows]
        for split, rows in trees.items()
    }
    held = HeldOutTexts(
        [item.content for item in select_held_out_items(items)] + reviews["valid"] + reviews["test"]
    )
    documents = [
        *iterate_gloss_documents(wordnet, select_held_out_items(items), held),
        *(
            Document("sst", remove_punctuation(text), text)
            for text in reviews["train"]
            if text not in held
        ),
    ]
    paragraphs = (
        text
        for name in wikitext.SOURCES
        if name in sources
        for text in iterate_wikitext_documents(sources[name])
    )
    documents += [
        Document("wikitext", remove_punctuation(text), text)
        for text in paragraphs
        if text not in held
    ]
    splits = split_by_key(documents, settings.valid_fraction, shared_keys=False)
    answers = Counter(
        [item.label for item in items] + [sst.LABELS[kind] for _, _, kind in trees["train"]]
    )
    bare = Counter({answer: times * settings.bare_words for answer, times in answers.items()})
    tokenizer = tokenizer_training.train_tokenizer(
        settings.tokenizer,
        settings.vocabulary_size,
        (document.text for document in splits["train"]),
        bare,
    )
    tables, notes = {}, []
    for split, chosen in splits.items():
        ids = [
            row.ids for row in tokenizer.encode_batch_fast([document.text for document in chosen])
        ]
        tables[split] = {"source": [document.source for document in chosen], "ids": ids}
        rows, tokens = Counter(tables[split]["source"]), Counter()
        for document, row in zip(chosen, ids, strict=True):
            tokens[document.source] += len(row)
        sizes = ", ".join(
            f"{source} {rows[source]} documents, {tokens[source]} tokens" for source in rows
        )
        notes.append(f"{split}: {sizes}")
    labels = Counter(item.label for item in items)
    single = [label for label in labels if len(tokenizer.encode(label).ids) == 1]
    notes += [
        f"vocabulary of {tokenizer.get_vocab_size()}; {len(single)} of {len(labels)} words of the inverse dictionary "
        "are one token without a space before them, the answers of "
        f"{sum(labels[label] for label in single)} of {len(items)} items",
        f"left out: the text of validation and test items, and texts that contain such a text of {SHORT} or more words",
    ]
    return TableDataset(
        tables, notes, "reduced", {"tokenizer.json": tokenizer.to_str(pretty=True) + "\n"}
    )


def remove_punctuation(text: str) -> str:
    """Normalise a text to lower-case words without punctuation, for comparison."""
    return " ".join(re.sub(r"[^\w\s]|_", "", text.lower()).split())


class HeldOutTexts:
    """Held-out texts.

    `text in held`: a text equals a held-out one, or contains one of at least SHORT words.
    """

    def __init__(self, texts: list[str]):
        self.whole = {remove_punctuation(text) for text in texts}
        self.long = NgramIndex(tuple(text.split()) for text in self.whole)

    def __contains__(self, text: str) -> bool:
        text = remove_punctuation(text)
        return text in self.whole or self.long.is_part_of(tuple(text.split()))


def iterate_gloss_documents(
    wordnet: WordNet, held_items: list[Item], held: HeldOutTexts
) -> Iterator[Document]:
    """Yield every word of a synset with its definition, in one of the FORMS, and its examples, if not held out."""
    out, topics, rng = (
        {item.synset for item in held_items},
        collect_topic_words(wordnet),
        random.Random(SEED),
    )
    for synset in wordnet.synsets.values():
        (gloss, examples), content = (
            split_gloss(synset.gloss),
            clean_definition(synset.gloss, topics),
        )
        if synset.id in out or not content or gloss in held or content in held:
            continue
        for lemma in synset.lemmas:
            text = rng.choice(FORMS).format(
                word=lemma.replace("_", " "), gloss=gloss, content=content
            )
            if text not in held:
                yield Document("glosses", remove_punctuation(content), text)
        for example in examples:
            if example not in held:
                yield Document("examples", remove_punctuation(example), example)


def iterate_wikitext_documents(path: Path) -> Iterator[str]:
    """Yield detokenised paragraphs without sentences that contain `<unk>`."""
    for _, sentences in wikitext.read_paragraphs(path):
        if text := wikitext.detokenise_wikitext(" ".join(s for s in sentences if "<unk>" not in s)):
            yield text
