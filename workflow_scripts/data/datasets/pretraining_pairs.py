"""Sentence pairs for pre-training with masked words and next sentences, as word pieces.

The pairs are consecutive sentences of WikiText-2; the words of a WordNet synset and their
definition; a definition and its first usage example. Pairs that contain an item of
`contamination.SOURCES` are excluded. Rare words that WikiText-2 has replaced become [UNK]. Other
files: `tokenizer.json` of WordPiece; `sememes.parquet` and `sememe_names.json`.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import Field

from workflow_scripts.common.result_folders import DataFolder
from workflow_scripts.data.datasets import inverse_dictionary
from workflow_scripts.data.datasets.contamination import (
    EvaluationTexts,
    normalise_words,
    read_evaluation_texts,
)
from workflow_scripts.data.formats import hownet, wikitext
from workflow_scripts.data.formats.tokenizer_training import train_wordpiece
from workflow_scripts.data.formats.wordnet import MARKER, WordNet, read_wordnet, split_gloss
from workflow_scripts.data.prepared import StreamedDataset, write_split
from workflow_scripts.data.sources.task_sources import DataOptions
from workflow_scripts.data.splits import split_by_key
from workflow_scripts.data.stand_ins.sememes import write_sememes
from workflow_scripts.data.stand_ins.wordnet import write_wordnet

if TYPE_CHECKING:
    from tokenizers import Tokenizer


class Options(DataOptions):
    """Size of the tokenizer, and share of each kind of pairs in the split `valid`.

    The tokenizer is trained on the training pairs. A definition with its words and examples is in
    one split, and so is a paragraph of WikiText-2. A few examples that belong to several
    definitions are in both splits.
    """

    vocabulary_size: Annotated[int, Field(gt=100)]
    valid_fraction: Annotated[float, Field(gt=0, lt=1)] = 0.02

    def list_splits(self) -> list[str]:
        """Return the names of the splits."""
        return ["train", "valid"]


class TextPair(NamedTuple):
    """A pair of texts.

    Pairs with equal `key`, e.g. the same definition, must be in the same split.
    """

    source: str
    key: str
    first: str
    second: str


def prepare(settings: Options, sources: dict[str, Path]) -> StreamedDataset:
    """Prepare splits, tokenizer and sememes. Raises UserError for missing or malformed sources."""
    with settings.open_sources(sources, write_dictionaries) as files:
        wordnet = read_wordnet(settings.find_source(files, inverse_dictionary.SOURCE))
        pairs = list(iterate_dictionary_pairs(wordnet))
        sememe_files = [settings.find_source(files, name) for name in hownet.SOURCES]
        sememes, names = hownet.read_sememes(sememe_files[0].parent)
    notes = []
    if settings.origin == "upstream":
        for path in [settings.find_source(sources, name) for name in wikitext.SOURCES]:
            pairs += iterate_wikitext_pairs(path)
        pairs, note = drop_leaks(pairs, read_evaluation_texts(sources))
        notes.append(note)
    splits = split_by_key(pairs, settings.valid_fraction, shared_keys=True)
    texts = chain.from_iterable((pair.first, pair.second) for pair in splits["train"])
    tokenizer = train_wordpiece(settings.vocabulary_size, texts)
    notes.append(
        f"vocabulary of {tokenizer.get_vocab_size()}; "
        f"{len(sememes)} words and phrases, {len(names)} sememes"
    )

    def fill(folder: Path) -> dict[str, Any]:
        return write_pair_splits(folder, splits, tokenizer, sememes, names)

    return StreamedDataset(fill, notes, "reduced")


def write_dictionaries(folder: Path) -> dict[str, Path]:
    """Write the stand-in dictionary and sememes. Returns their paths by source name."""
    return write_wordnet(folder) | write_sememes(folder)


def drop_leaks(
    pairs: list[TextPair], evaluation_texts: EvaluationTexts
) -> tuple[list[TextPair], str]:
    """Drop the pairs that contain an evaluated item. Returns the others and a note."""
    kept = []
    left_out: Counter[str] = Counter()
    for pair in pairs:
        if evaluation_texts.is_leaked_by(pair.first, pair.second):
            left_out[pair.source] += 1
        else:
            kept.append(pair)
    sources = dict.fromkeys(pair.source for pair in pairs)
    counts = [f"{left_out[source]} {source}" for source in sources if left_out[source]]
    listed = ", ".join(counts) or "none"
    return kept, f"left out, since they contain items that models are evaluated on: {listed}"


def write_pair_splits(
    folder: Path,
    splits: dict[str, list[TextPair]],
    tokenizer: "Tokenizer",
    sememes: dict[str, list[int]],
    names: list[str],
) -> dict[str, Any]:
    """Write all files except dataset.json. Returns content of dataset.json on the splits."""
    summary = {}
    for split, pairs in splits.items():
        first_ids = encode_without_marks(tokenizer, [pair.first for pair in pairs])
        second_ids = encode_without_marks(tokenizer, [pair.second for pair in pairs])
        sources = [pair.source for pair in pairs]
        columns = {"source": sources, "first_ids": first_ids, "second_ids": second_ids}
        write_split(folder, split, columns)
        summary[split] = {
            "rows": len(pairs),
            "distinct": len({(pair.first, pair.second) for pair in pairs}),
            "tokens": sum(map(len, first_ids + second_ids)),
            **Counter(sources),
        }
    hownet.write_sememe_files(folder, sememes, names)
    text = tokenizer.to_str(pretty=True) + "\n"
    DataFolder(folder).tokenizer.write_text(text, encoding="utf-8")
    return {"splits": summary}


def encode_without_marks(tokenizer: "Tokenizer", texts: list[str]) -> list[list[int]]:
    """Return the ids of each text, without [CLS] and [SEP]."""
    encodings = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    return [encoding.ids for encoding in encodings]


def iterate_dictionary_pairs(wordnet: WordNet) -> Iterator[TextPair]:
    """Yield pairs of a synset's words and definition, and of the definition and an example.

    The example is the first.
    """
    for synset in wordnet.synsets.values():
        gloss, examples = split_gloss(synset.gloss)
        if not gloss:
            continue
        key = " ".join(normalise_words(gloss))
        words = ", ".join(MARKER.sub("", lemma).replace("_", " ") for lemma in synset.lemmas)
        yield TextPair("definitions", key, words, gloss)
        for example in examples[:1]:
            yield TextPair("examples", key, gloss, example)


def iterate_wikitext_pairs(path: Path) -> Iterator[TextPair]:
    """Yield pairs of consecutive sentences in a paragraph, detokenised, with [UNK] for `<unk>`."""
    for number, tokenised in wikitext.read_paragraphs(path):
        sentences = []
        for tokens in tokenised:
            text = wikitext.detokenise_wikitext(tokens).replace("<unk>", "[UNK]").strip()
            if text:
                sentences.append(text)
        for first, second in pairwise(sentences):
            yield TextPair("wikitext", f"{path.name}:{number}", first, second)
