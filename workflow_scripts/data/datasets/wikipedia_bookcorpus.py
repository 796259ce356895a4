"""Sentence pairs of Wikipedia and BookCorpus for pre-training.

They are read in parts: 30 bytes per pair are in memory. Punkt splits each paragraph of Wikipedia
into sentences; BookCorpus has one sentence per line and no marks between paragraphs or books. A
pair is two consecutive sentences. Each sentence is in one pair only, as each is in one sequence of
BERT's. Other files: `train.mapped/`, memory-mapped arrays for training (`mapped_pairs`);
`tokenizer.json` of bert-base-uncased; `sememes.parquet` and `sememe_names.json`.
"""

import glob
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, PositiveInt

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.result_folders import DataFolder
from workflow_scripts.data.formats import hownet, mapped_pairs, punkt
from workflow_scripts.data.formats.parallel_text import map_in_order, split_into_chunks
from workflow_scripts.data.prepared import StreamedDataset
from workflow_scripts.data.sources.archives import iterate_archive
from workflow_scripts.data.sources.task_sources import DataOptions
from workflow_scripts.data.stand_ins import corpora as stand_in

if TYPE_CHECKING:
    from nltk.tokenize.punkt import PunktSentenceTokenizer
    from tokenizers import Tokenizer

WIKIPEDIA = "wikipedia/"
BOOKCORPUS = "bookcorpus/bookcorpus.tar.bz2"
TOKENIZER = "bert/tokenizer.json"
ARTICLES = 500  # in one chunk
LINES = 20_000  # in one chunk
SPLITS = ("train", "valid")
Pairs = list[tuple[str, str]]


class Options(DataOptions):
    """Length of sentences, and the share of validation pairs.

    longest: pieces of a sentence, which is truncated; 128 have room for 125 of both and 3 tokens.
    validation_every: every n-th pair is used for validation.
    """

    longest: PositiveInt = 125
    validation_every: Annotated[int, Field(gt=1)] = 10_000

    def list_splits(self) -> list[str]:
        """Return the names of the splits."""
        return list(SPLITS)


def prepare(settings: Options, sources: dict[str, Path]) -> StreamedDataset:
    """Prepare the splits. Malformed sources raise UserError later, in `fill`."""
    notes = [
        "each sentence is in one pair; no text of evaluation sets is left out, as in the paper",
        f"sentences are truncated after {settings.longest} pieces",
        f"valid: the last of each {settings.validation_every} pairs",
    ]
    if settings.origin == "upstream":
        for name in (BOOKCORPUS, TOKENIZER, punkt.SOURCE, *hownet.SOURCES):
            settings.find_source(sources, name)
        if not any(name.startswith(WIKIPEDIA) for name in sources):
            settings.find_source(sources, f"{WIKIPEDIA}<file>.parquet")

    def fill(folder: Path) -> dict[str, Any]:
        with settings.open_sources(sources, stand_in.write_corpora) as files:
            return write_corpus_pairs(folder, settings, files)

    return StreamedDataset(fill, notes)


def write_corpus_pairs(folder: Path, settings: Options, sources: dict[str, Path]) -> dict[str, Any]:
    """Write all files except dataset.json into `folder`.

    Returns the content of dataset.json on the splits. Raises UserError for broken sources.
    """
    # Not imported at the top, because reading the catalogue imports this module and must be fast.
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    tokenizer = load_truncating_tokenizer(sources[TOKENIZER], settings.longest)
    ids = pa.list_(pa.int32())
    columns = pa.schema([("source", pa.string()), ("first_ids", ids), ("second_ids", ids)])
    counts: dict[str, Counter[str]] = {split: Counter(rows=0, tokens=0) for split in SPLITS}
    writers = {}
    for split in SPLITS:
        path = DataFolder(folder).split(split)
        writers[split] = pq.ParquetWriter(path, columns, compression="zstd")
    n_before = 0  # pairs before those of a chunk
    try:
        for source, pairs in iterate_corpus_pairs(sources):
            first_ids = encode_sides(tokenizer, pairs, 0)
            second_ids = encode_sides(tokenizer, pairs, 1)
            table = pa.table([[source] * len(pairs), first_ids, second_ids], schema=columns)
            numbers = range(n_before + 1, n_before + len(pairs) + 1)  # of the pairs, from 1
            is_valid = pa.array([number % settings.validation_every == 0 for number in numbers])
            n_before += len(pairs)
            masks = {"train": pc.call_function("invert", [is_valid]), "valid": is_valid}
            for split, mask in masks.items():
                part = table.filter(mask)
                writers[split].write_table(part)
                counts[split].update({"rows": len(part), source: len(part)})
                for name in ("first_ids", "second_ids"):
                    counts[split]["tokens"] += len(part[name].combine_chunks().flatten())
    finally:
        for writer in writers.values():
            writer.close()
    if counts["train"]["rows"]:
        mapped_pairs.write_mapped_pairs(folder, "train")
    hownet.write_sememe_files(folder, *hownet.read_sememes(sources[hownet.SOURCES[0]].parent))
    DataFolder(folder).tokenizer.write_bytes(sources[TOKENIZER].read_bytes())
    return {"splits": {split: dict(of_split) for split, of_split in counts.items()}}


def load_truncating_tokenizer(file: Path, longest: int) -> "Tokenizer":
    """Load a tokenizer that truncates texts after `longest` pieces.

    Raises UserError if the file is broken.
    """
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # the library has no narrower exception
        raise UserError(
            f"{file} cannot be read as a tokenizer ({error}); fetch it again"
        ) from error
    tokenizer.enable_truncation(longest)
    return tokenizer


def encode_sides(tokenizer: "Tokenizer", pairs: Pairs, side: int) -> list[list[int]]:
    """Return the ids of the first (0) or second (1) sentences, without [CLS] and [SEP]."""
    sentences = [pair[side] for pair in pairs]
    encodings = tokenizer.encode_batch_fast(sentences, add_special_tokens=False)
    return [encoding.ids for encoding in encodings]


def iterate_corpus_pairs(sources: dict[str, Path]) -> Iterator[tuple[str, Pairs]]:
    """Yield (name of the corpus, some of its pairs): first Wikipedia, then BookCorpus.

    Each is in file order.
    """
    shards = [path for name, path in sorted(sources.items()) if name.startswith(WIKIPEDIA)]
    articles = split_into_chunks(read_articles(shards), ARTICLES)
    for pairs in map_in_order(pair_article_sentences, articles, sources.get(punkt.SOURCE)):
        if pairs:
            yield "wikipedia", pairs
    for lines in split_into_chunks(read_book_lines(sources[BOOKCORPUS]), LINES):
        if pairs := pair_consecutive(lines):
            yield "bookcorpus", pairs


def read_articles(shards: Sequence[Path]) -> Iterator[str]:
    """Yield the texts of the articles in Parquet files, in order.

    Raises UserError for any other file.
    """
    from datasets import load_dataset
    from pyarrow import ArrowException

    for shard in shards:
        # The library takes a name for a pattern, and a folder may be called recompose[2].
        name = glob.escape(str(shard.resolve()))
        try:
            stream = load_dataset(
                "parquet", data_files=name, split="train", streaming=True, columns=["text"]
            )
            for row in stream:
                if row["text"] is None:
                    raise ValueError("an article without text")
                yield row["text"]
        except (ArrowException, KeyError, ValueError, OSError) as error:
            reason = str(error).partition("\n")[0]
            raise UserError(
                f"{shard} has no column text of articles ({reason}); fetch it again"
            ) from error


def read_book_lines(archive: Path) -> Iterator[str]:
    """Yield the non-blank lines of the text files in an archive, without unpacking it."""
    for name, content in iterate_archive(archive):
        if not name.endswith(".txt"):
            continue
        for line in content:
            if text := line.decode("utf-8", "replace").strip():
                yield text


@lru_cache(maxsize=1)
def load_splitter(archive: Path | None) -> "PunktSentenceTokenizer":
    """Load the splitter once in each process.

    Without an archive (stand-in data), it is an untrained Punkt.
    """
    from nltk.tokenize.punkt import PunktSentenceTokenizer

    if archive is None:
        return PunktSentenceTokenizer()
    return punkt.load_sentence_splitter(archive)


def pair_article_sentences(texts: list[str], archive: Path | None) -> Pairs:
    """Return the sentence pairs of each paragraph (line) of articles.

    A heading is one sentence, so it has no pair.
    """
    splitter = load_splitter(archive)
    pairs: Pairs = []
    for text in texts:
        for paragraph in text.split("\n"):
            pairs += pair_consecutive(splitter.tokenize(paragraph.strip()))
    return pairs


def pair_consecutive(sentences: Sequence[str]) -> Pairs:
    """Pair the first and second sentence, the third and fourth, and so on.

    A last one without a partner is dropped.
    """
    return list(zip(sentences[::2], sentences[1::2], strict=False))
