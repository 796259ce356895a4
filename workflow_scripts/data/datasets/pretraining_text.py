"""Pre-training text for small models, as tokens of a small tokenizer trained on it.

The documents are WordNet definitions with their word, in several FORMS; WordNet's usage examples;
text of WikiText-2; training sentences of SST. Validation and test items of SST and of the inverse
dictionary (split by item or by word) are excluded, and so are texts that contain the text of such
an item with at least SHORT words.
"""

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import Field

from workflow_scripts.common.result_folders import DataFolder
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

if TYPE_CHECKING:
    from tokenizers import Tokenizer

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
    """Options; those of `DictionaryOptions` must be equal to those of the inverse dictionary tasks.

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

    def list_splits(self) -> list[str]:
        """Return the names of the splits."""
        return ["train", "valid"]


class Document(NamedTuple):
    """A text for pre-training.

    Documents with equal `key`, e.g. the same definition, must be in the same split.
    """

    source: str
    key: str
    text: str


def prepare(settings: Options, sources: dict[str, Path]) -> TableDataset:
    """Prepare the splits and the tokenizer. Raises UserError for malformed sources."""
    from workflow_scripts.data.formats.tokenizer_training import train_tokenizer

    wordnet = load_dictionary(settings, sources)
    items = find_items(wordnet, settings.definienda)
    held_out_items = select_held_out_items(items)
    trees = sst.read_sst(settings, sources)
    texts_of_items = [item.content for item in held_out_items]
    for tree in (*trees["valid"], *trees["test"]):
        texts_of_items.append(sst.clean_sentence(tree.sentence))
    held_out = HeldOutTexts(texts_of_items)

    documents = list(iterate_gloss_documents(wordnet, held_out_items, held_out))
    reviews = [sst.clean_sentence(tree.sentence) for tree in trees["train"]]
    documents += make_documents("sst", reviews, held_out)
    for name in wikitext.SOURCES:
        if name in sources:
            paragraphs = iterate_wikitext_paragraphs(sources[name])
            documents += make_documents("wikitext", paragraphs, held_out)
    splits = split_by_key(documents, settings.valid_fraction, shared_keys=False)

    bare_words: Counter[str] = Counter()
    for item in items:
        bare_words[item.label] += settings.bare_words
    for tree in trees["train"]:
        bare_words[sst.LABELS[tree.kind]] += settings.bare_words
    texts = (document.text for document in splits["train"])
    tokenizer = train_tokenizer(settings.tokenizer, settings.vocabulary_size, texts, bare_words)

    tables = {}
    notes = []
    for split, documents_of_split in splits.items():
        tables[split] = encode_documents(tokenizer, documents_of_split)
        notes.append(f"{split}: {describe_sizes(**tables[split])}")
    notes += [
        describe_answers(tokenizer, items),
        "left out: the text of validation and test items, and texts that contain such a text of "
        f"{SHORT} or more words",
    ]
    tokenizer_file = tokenizer.to_str(pretty=True) + "\n"
    files = {DataFolder(Path()).tokenizer.name: tokenizer_file}
    return TableDataset(tables, notes, "reduced", files)


def encode_documents(tokenizer: "Tokenizer", documents: Sequence[Document]) -> dict[str, list[Any]]:
    """Return the columns of a split: the source of each document, and its token ids."""
    encodings = tokenizer.encode_batch_fast([document.text for document in documents])
    return {
        "source": [document.source for document in documents],
        "ids": [encoding.ids for encoding in encodings],
    }


def describe_answers(tokenizer: "Tokenizer", items: Sequence[Item]) -> str:
    """Say how many words of the inverse dictionary are one token, and answer how many items."""
    labels = Counter(item.label for item in items)
    one_token = [label for label in labels if len(tokenizer.encode(label).ids) == 1]
    n_answered = sum(labels[label] for label in one_token)
    return (
        f"vocabulary of {tokenizer.get_vocab_size()}; {len(one_token)} of {len(labels)} words of "
        "the inverse dictionary are one token without a space before them, the answers of "
        f"{n_answered} of {len(items)} items"
    )


def make_documents(source: str, texts: Iterable[str], held_out: "HeldOutTexts") -> list[Document]:
    """Return the texts that are not held out as documents."""
    documents = []
    for text in texts:
        if text not in held_out:
            documents.append(Document(source, remove_punctuation(text), text))
    return documents


def describe_sizes(source: list[str], ids: list[list[int]]) -> str:
    """Describe the number of documents and tokens of each source.

    source, ids: the source and the tokens of each document.
    """
    n_documents = Counter(source)
    n_tokens: Counter[str] = Counter()
    for name, ids_of_document in zip(source, ids, strict=True):
        n_tokens[name] += len(ids_of_document)
    sizes = []
    for name in n_documents:
        sizes.append(f"{name} {n_documents[name]} documents, {n_tokens[name]} tokens")
    return ", ".join(sizes)


def remove_punctuation(text: str) -> str:
    """Normalise a text to lower-case words without punctuation, for comparison."""
    return " ".join(re.sub(r"[^\w\s]|_", "", text.lower()).split())


class HeldOutTexts:
    """Held-out texts, compared without case and punctuation.

    `text in held_out`: a text equals a held-out one, or contains one of at least SHORT words.
    """

    def __init__(self, texts: list[str]):
        self.whole = {remove_punctuation(text) for text in texts}
        self.long = NgramIndex(tuple(text.split()) for text in self.whole)

    def __contains__(self, text: str) -> bool:
        plain_text = remove_punctuation(text)
        if plain_text in self.whole:
            return True
        return self.long.is_part_of(tuple(plain_text.split()))


def iterate_gloss_documents(
    wordnet: WordNet, held_out_items: list[Item], held_out: HeldOutTexts
) -> Iterator[Document]:
    """Yield every word of a synset with its definition, in one of the FORMS, and its examples.

    What is held out is skipped.
    """
    held_out_synsets = {item.synset for item in held_out_items}
    topics = collect_topic_words(wordnet)
    rng = random.Random(SEED)
    for synset in wordnet.synsets.values():
        gloss, examples = split_gloss(synset.gloss)
        content = clean_definition(synset.gloss, topics)
        if synset.id in held_out_synsets or not content:
            continue
        if gloss in held_out or content in held_out:
            continue
        for lemma in synset.lemmas:
            form = rng.choice(FORMS)
            text = form.format(word=lemma.replace("_", " "), gloss=gloss, content=content)
            if text not in held_out:
                yield Document("glosses", remove_punctuation(content), text)
        yield from make_documents("examples", examples, held_out)


def iterate_wikitext_paragraphs(path: Path) -> Iterator[str]:
    """Yield detokenised paragraphs without sentences that contain `<unk>`."""
    for _line, sentences in wikitext.read_paragraphs(path):
        without_unknown = [sentence for sentence in sentences if "<unk>" not in sentence]
        if text := wikitext.detokenise_wikitext(" ".join(without_unknown)):
            yield text
