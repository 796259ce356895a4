"""Sentence pairs for pre-training with masked words and next sentences, as pieces of a WordPiece tokenizer.

The pairs are consecutive sentences of WikiText-2; the words of a WordNet synset and their
definition; a definition and its first usage example. Pairs that contain an item of
`contamination.SOURCES` are excluded. Rare words that WikiText-2
has replaced become [UNK]. Other files: `tokenizer.json`; `sememes.parquet` and `sememe_names.json`.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import Field

from workflow_scripts.data.datasets import inverse_dictionary
from workflow_scripts.data.datasets.contamination import normalise_words, read_evaluation_texts
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
    """Size of the tokenizer, trained on the training pairs, and share of each kind of pairs in the split `valid`.

    A definition with its words and examples is in one split, and so is a paragraph of WikiText-2. A
    few examples that belong to several definitions are in both splits.
    """

    vocabulary_size: Annotated[int, Field(gt=100)]
    valid_fraction: Annotated[float, Field(gt=0, lt=1)] = 0.02


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
    with settings.open_sources(sources, lambda to: write_wordnet(to) | write_sememes(to)) as files:
        pairs = list(
            iterate_dictionary_pairs(
                read_wordnet(settings.find_source(files, inverse_dictionary.SOURCE))
            )
        )
        folder, _ = (settings.find_source(files, name).parent for name in hownet.SOURCES)
        known, names = hownet.read_sememes(folder)
    notes = []
    if settings.origin == "upstream":
        paths = [settings.find_source(sources, name) for name in wikitext.SOURCES]
        found = pairs + [pair for path in paths for pair in iterate_wikitext_pairs(path)]
        held = read_evaluation_texts(sources)
        pairs = [pair for pair in found if not held.is_leaked_by(pair.first, pair.second)]
        left_out = Counter(pair.source for pair in found) - Counter(pair.source for pair in pairs)
        listed = ", ".join(f"{count} {source}" for source, count in left_out.items())
        notes = [
            f"left out, since they contain items that models are evaluated on: {listed or 'none'}"
        ]
    splits = split_by_key(pairs, settings.valid_fraction, shared_keys=True)
    tokenizer = train_wordpiece(
        settings.vocabulary_size,
        (text for pair in splits["train"] for text in (pair.first, pair.second)),
    )
    notes.append(
        f"vocabulary of {tokenizer.get_vocab_size()}; {len(known)} words and phrases, {len(names)} sememes"
    )
    return StreamedDataset(
        lambda folder: write_pair_splits(folder, splits, tokenizer, known, names), notes, "reduced"
    )


def write_pair_splits(
    folder: Path,
    splits: dict[str, list[TextPair]],
    tokenizer: "Tokenizer",
    known: dict[str, list[int]],
    names: list[str],
) -> dict[str, Any]:
    """Write all files except dataset.json. Returns content of dataset.json on the splits."""
    summary = {}
    for split, pairs in splits.items():
        columns: dict[str, list] = {"source": [pair.source for pair in pairs]}
        for side in ("first", "second"):
            encoded = tokenizer.encode_batch_fast(
                [getattr(pair, side) for pair in pairs], add_special_tokens=False
            )
            columns[f"{side}_ids"] = [row.ids for row in encoded]
        write_split(folder, split, columns)
        summary[split] = {
            "rows": len(pairs),
            "distinct": len({(pair.first, pair.second) for pair in pairs}),
            "tokens": sum(map(len, columns["first_ids"] + columns["second_ids"])),
            **Counter(pair.source for pair in pairs),
        }
    hownet.write_sememe_files(folder, known, names)
    (folder / "tokenizer.json").write_text(tokenizer.to_str(pretty=True) + "\n", encoding="utf-8")
    return {"splits": summary}


def iterate_dictionary_pairs(wordnet: WordNet) -> Iterator[TextPair]:
    """Yield pairs of a synset's words and definition, and of the definition and its first example."""
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
    """Yield pairs of consecutive sentences in a paragraph, detokenised and with [UNK] for `<unk>`."""
    for number, tokenised in wikitext.read_paragraphs(path):
        sentences = [
            wikitext.detokenise_wikitext(s).replace("<unk>", "[UNK]").strip() for s in tokenised
        ]
        for first, second in pairwise(filter(None, sentences)):
            yield TextPair("wikitext", f"{path.name}:{number}", first, second)
