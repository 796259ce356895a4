"""Sentence pairs for pre-training with masked words and next sentences, as pieces of a WordPiece tokenizer.

The pairs are consecutive sentences of WikiText-2; the words of a WordNet synset and their definition; a definition and
its first usage example. Pairs that contain an item of `contamination.SOURCES` are excluded. Rare words that WikiText-2
has replaced become [UNK].

Options of `prepare`:

from: `upstream` reads WordNet, WikiText-2 and HowNet's sememes; `stand_in` first writes a small WordNet and sememes.
vocabulary_size: number of tokens of the tokenizer, which is trained on the training pairs.
valid_fraction: share of each kind of pairs in the split `valid`. A definition with its words and examples is in one
    split, and so is a paragraph of WikiText-2. A few examples that belong to several definitions are in both splits.

Splits: `train`, `valid`, with the columns `source`, `first_ids` and `second_ids`, without special tokens. Other files:
`tokenizer.json`; `sememes.parquet` (sememe numbers of words) and `sememe_names.json`.
"""

import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import Field

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import StrictModel, parse_as
from workflow_scripts.data.datasets.contamination import normalise_words, read_evaluation_texts
from workflow_scripts.data.datasets.inverse_dictionary import EXAMPLES, strip_examples
from workflow_scripts.data.datasets.pretraining_text import QUOTED, UNTOKENISED
from workflow_scripts.data.formats import hownet, wordpiece
from workflow_scripts.data.formats.lines import read_numbered_lines
from workflow_scripts.data.formats.wordnet import MARKER, WordNet, read_wordnet
from workflow_scripts.data.prepared import StreamedDataset
from workflow_scripts.data.stand_ins import sememes as sememes_stand_in
from workflow_scripts.data.stand_ins import wordnet as wordnet_stand_in

if TYPE_CHECKING:
    from tokenizers import Tokenizer

WHERE = "options of workflow_scripts.data.datasets.pretraining_pairs"
WORDNET = "wordnet/wordnet-3.0-dict.tar.xz"
WIKITEXT = ("wikitext2/valid.txt", "wikitext2/test.txt")
SEED = 42


class Options(StrictModel):
    """See the module's docstring."""

    origin: Literal["upstream", "stand_in"] = Field("upstream", alias="from")
    vocabulary_size: Annotated[int, Field(gt=100)]
    valid_fraction: Annotated[float, Field(gt=0, lt=1)] = 0.02


class TextPair(NamedTuple):
    """A pair of texts. Pairs with equal `key`, e.g. the same definition, must be in the same split."""

    source: str
    key: str
    first: str
    second: str


def prepare(options: dict[str, Any], sources: dict[str, Path]) -> StreamedDataset:
    """Prepare splits, tokenizer and sememes. Raises UserError for wrong options or missing or malformed sources."""
    settings = parse_as(Options, options, WHERE)
    if settings.origin == "stand_in":
        with tempfile.TemporaryDirectory() as made:
            wordnet_stand_in.write_wordnet(Path(made))
            sememes_stand_in.write_sememes(Path(made))
            pairs = list(iterate_dictionary_pairs(read_wordnet(Path(made))))
            known, names = hownet.read_sememes(Path(made)), hownet.read_sememe_names(Path(made))
        notes = ["a made-up dictionary and made-up sememes"]
    else:
        if missing := [name for name in (WORDNET, *WIKITEXT, *hownet.SOURCES) if name not in sources]:
            raise UserError(f"{WHERE}: from: upstream needs the source {missing[0]}; name it in the task's sources")
        found = [
            *iterate_dictionary_pairs(read_wordnet(sources[WORDNET])),
            *(p for name in WIKITEXT for p in iterate_wikitext_pairs(sources[name])),
        ]
        held = read_evaluation_texts(sources)
        pairs = [pair for pair in found if not held.is_leaked_by(pair.first, pair.second)]
        folder = sources[hownet.SOURCES[0]].parent
        known, names = hownet.read_sememes(folder), hownet.read_sememe_names(folder)
        left_out = Counter(pair.source for pair in found) - Counter(pair.source for pair in pairs)
        told = ", ".join(f"{count} {source}" for source, count in left_out.items())
        notes = [f"left out, since they hold items that models are evaluated on: {told or 'none'}"]
    splits = split_pairs(pairs, settings.valid_fraction)
    tokenizer = wordpiece.train_wordpiece(
        settings.vocabulary_size, (text for pair in splits["train"] for text in (pair.first, pair.second))
    )
    notes.append(f"vocabulary of {tokenizer.get_vocab_size()}; {len(known)} words and phrases, {len(names)} sememes")
    protocol = "stand_in" if settings.origin == "stand_in" else "reduced"
    return StreamedDataset(lambda folder: write_pairs(folder, splits, tokenizer, known, names), notes, protocol)


def write_pairs(
    folder: Path,
    splits: dict[str, list[TextPair]],
    tokenizer: "Tokenizer",
    known: dict[str, list[int]],
    names: list[str],
) -> dict[str, Any]:
    """Write all files except dataset.json. Returns content of dataset.json on the splits."""
    # Not imported at the top, because reading the catalogue imports this module and must be fast.
    import pyarrow as pa
    import pyarrow.parquet as pq

    numbers, summary = pa.list_(pa.int32()), {}
    for split, pairs in splits.items():
        columns = {"source": pa.array([pair.source for pair in pairs], pa.string())}
        for side in ("first", "second"):
            encoded = tokenizer.encode_batch([getattr(pair, side) for pair in pairs], add_special_tokens=False)
            columns[f"{side}_ids"] = pa.array([row.ids for row in encoded], numbers)
        pq.write_table(pa.table(columns), folder / f"{split}.parquet", compression="zstd")
        summary[split] = {
            "rows": len(pairs),
            "distinct": len({(pair.first, pair.second) for pair in pairs}),
            "tokens": sum(len(columns[f"{side}_ids"].flatten()) for side in ("first", "second")),
            **Counter(pair.source for pair in pairs),
        }
    hownet.write_sememes(folder, known, names)
    (folder / "tokenizer.json").write_text(tokenizer.to_str(pretty=True) + "\n", encoding="utf-8")
    return {"splits": summary}


def iterate_dictionary_pairs(wordnet: WordNet) -> Iterator[TextPair]:
    """Yield pairs of a synset's words and definition, and of the definition and its first example."""
    for synset in wordnet.synsets.values():
        gloss, rest = strip_examples(synset.gloss), EXAMPLES.search(synset.gloss)
        if not gloss:
            continue
        key = " ".join(normalise_words(gloss))
        words = ", ".join(MARKER.sub("", lemma).replace("_", " ") for lemma in synset.lemmas)
        yield TextPair("definitions", key, words, gloss)
        for example in QUOTED.findall(synset.gloss[rest.start() :])[:1] if rest else []:
            yield TextPair("examples", key, gloss, example)


def iterate_wikitext_pairs(path: Path) -> Iterator[TextPair]:
    """Yield pairs of consecutive sentences in a paragraph, detokenised; headings are skipped."""
    for number, line in read_numbered_lines(path):
        if line.strip().startswith("="):
            continue
        sentences = [detokenise_wikitext(sentence) for sentence in re.split(r"(?<= [.!?]) ", line.strip())]
        for first, second in pairwise(filter(None, sentences)):
            yield TextPair("wikitext", f"{path.name}:{number}", first, second)


def detokenise_wikitext(sentence: str) -> str:
    """Detokenise a sentence of WikiText: remove the spaces around punctuation and write [UNK] for `<unk>`."""
    for pattern, replacement in UNTOKENISED:
        sentence = pattern.sub(replacement, sentence)
    return sentence.replace("<unk>", "[UNK]").strip()


def split_pairs(pairs: list[TextPair], valid_fraction: float) -> dict[str, list[TextPair]]:
    """Split into train and valid by key: `valid_fraction` of each source's keys, rounded up, is in `valid`, with all
    pairs of these keys, also those of other sources."""
    rng, valid = random.Random(SEED), set()
    for source in dict.fromkeys(pair.source for pair in pairs):
        keys = sorted({pair.key for pair in pairs if pair.source == source} - valid)
        valid |= set(rng.sample(keys, -int(-len(keys) * valid_fraction // 1)))
    return {
        "train": [pair for pair in pairs if pair.key not in valid],
        "valid": [pair for pair in pairs if pair.key in valid],
    }
