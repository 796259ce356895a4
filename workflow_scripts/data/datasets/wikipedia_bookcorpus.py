"""Sentence pairs of Wikipedia and BookCorpus for pre-training, read in parts: 30 bytes per pair are in memory.

Punkt splits each paragraph of Wikipedia into sentences; BookCorpus has one sentence per line and no
marks between paragraphs or books. A pair is two consecutive sentences. Each sentence is in one pair
only, as each is in one sequence of BERT's. Other files: `train.mapped/`, memory-mapped arrays for
training (`mapped_pairs`); `tokenizer.json` of bert-base-uncased; `sememes.parquet` and
`sememe_names.json`.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, PositiveInt

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.formats import hownet, mapped_pairs, punkt
from workflow_scripts.data.formats.parallel_text import map_in_order, split_into_chunks
from workflow_scripts.data.prepared import StreamedDataset
from workflow_scripts.data.sources.archives import iterate_archive
from workflow_scripts.data.sources.task_sources import DataOptions
from workflow_scripts.data.stand_ins import corpora as stand_in

if TYPE_CHECKING:
    from nltk.tokenize.punkt import PunktSentenceTokenizer

WIKIPEDIA, BOOKCORPUS, TOKENIZER = (
    "wikipedia/",
    "bookcorpus/bookcorpus.tar.bz2",
    "bert/tokenizer.json",
)
ARTICLES, LINES = 500, 20_000  # in one chunk
SPLITS = ("train", "valid")
Pairs = list[tuple[str, str]]


class Options(DataOptions):
    """Length of sentences, and the share of validation pairs."""

    longest: PositiveInt = (
        125  # pieces of a sentence, which is truncated; 128 have room for 125 of both and 3 tokens
    )
    validation_every: Annotated[int, Field(gt=1)] = 10_000  # every n-th pair is used for validation


def prepare(settings: Options, sources: dict[str, Path]) -> StreamedDataset:
    """Prepare the splits. Malformed sources raise UserError later, in `fill`."""
    notes = [
        "each sentence is in one pair; no text of evaluation sets is left out, as in the paper",
        f"sentences are truncated after {settings.longest} pieces",
        f"valid: the last of each {settings.validation_every} pairs",
    ]
    if settings.origin == "upstream":
        shard = next(
            (name for name in sources if name.startswith(WIKIPEDIA)), f"{WIKIPEDIA}<file>.parquet"
        )
        for name in (BOOKCORPUS, TOKENIZER, punkt.SOURCE, *hownet.SOURCES, shard):
            settings.find_source(sources, name)

    def fill(folder: Path) -> dict[str, Any]:
        with settings.open_sources(sources, stand_in.write_corpora) as files:
            return write_corpus_pairs(folder, settings, files)

    return StreamedDataset(fill, notes)


def write_corpus_pairs(folder: Path, settings: Options, sources: dict[str, Path]) -> dict[str, Any]:
    """Write all files except dataset.json.

    Returns its content on the splits. Raises UserError for broken sources.
    """
    # Not imported at the top, because reading the catalogue imports this module and must be fast.
    import pyarrow as pa
    import pyarrow.parquet as pq
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(sources[TOKENIZER]))
    except Exception as error:  # the library has no narrower exception
        raise UserError(
            f"{sources[TOKENIZER]} cannot be read as a tokenizer ({error}); fetch it again"
        ) from error
    tokenizer.enable_truncation(settings.longest)
    ids = pa.list_(pa.int32())
    columns = pa.schema([("source", pa.string()), ("first_ids", ids), ("second_ids", ids)])
    counts: dict[str, Counter[str]] = {split: Counter(rows=0, tokens=0) for split in SPLITS}
    writers = {
        split: pq.ParquetWriter(folder / f"{split}.parquet", columns, compression="zstd")
        for split in SPLITS
    }
    number = 0
    try:
        for source, pairs in iterate_corpus_pairs(sources):
            sides = [
                [
                    row.ids
                    for row in tokenizer.encode_batch_fast(list(side), add_special_tokens=False)
                ]
                for side in zip(*pairs, strict=True)
            ]
            table = pa.table([[source] * len(pairs), *sides], schema=columns)
            drawn = pa.array(
                [(number + i + 1) % settings.validation_every == 0 for i in range(len(pairs))]
            )
            number += len(pairs)
            for split, chosen in zip(SPLITS, (pa.compute.invert(drawn), drawn), strict=True):
                part = table.filter(chosen)
                writers[split].write_table(part)
                tokens = sum(
                    len(part[name].combine_chunks().flatten())
                    for name in ("first_ids", "second_ids")
                )
                counts[split].update({"rows": len(part), "tokens": tokens, source: len(part)})
    finally:
        for writer in writers.values():
            writer.close()
    if counts["train"]["rows"]:
        mapped_pairs.write_mapped_pairs(folder, "train")
    hownet.write_sememe_files(folder, *hownet.read_sememes(sources[hownet.SOURCES[0]].parent))
    (folder / "tokenizer.json").write_bytes(sources[TOKENIZER].read_bytes())
    return {"splits": {split: dict(found) for split, found in counts.items()}}


def iterate_corpus_pairs(sources: dict[str, Path]) -> Iterator[tuple[str, Pairs]]:
    """Yield (name of the corpus, some of its pairs): first Wikipedia, then BookCorpus, each in file order."""
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
        try:
            stream = load_dataset(
                "parquet", data_files=str(shard), split="train", streaming=True, columns=["text"]
            )
            for row in stream:
                yield row["text"]
        except (ArrowException, KeyError, ValueError, OSError) as error:
            reason = str(error).partition("\n")[0]
            raise UserError(
                f"{shard} has no column text of articles ({reason}); fetch it again"
            ) from error


def read_book_lines(archive: Path) -> Iterator[str]:
    """Yield the non-blank lines of the text files in an archive, without unpacking it."""
    for name, content in iterate_archive(archive):
        for line in content if name.endswith(".txt") else ():
            if text := line.decode("utf-8", "replace").strip():
                yield text


@lru_cache(maxsize=1)
def load_splitter(archive: Path | None) -> "PunktSentenceTokenizer":
    """Load the splitter once in each process; without an archive (stand-in data), an untrained Punkt."""
    from nltk.tokenize.punkt import PunktSentenceTokenizer

    return punkt.load_sentence_splitter(archive) if archive else PunktSentenceTokenizer()


def pair_article_sentences(texts: list[str], archive: Path | None) -> Pairs:
    """Return the sentence pairs of each paragraph (line) of articles.

    A heading is one sentence, so it has no pair.
    """
    paragraphs = [paragraph.strip() for text in texts for paragraph in text.split("\n")]
    splitter = load_splitter(archive)
    return [
        pair for paragraph in paragraphs for pair in pair_consecutive(splitter.tokenize(paragraph))
    ]


def pair_consecutive(sentences: Sequence[str]) -> Pairs:
    """Pair the first and second sentence, the third and fourth, and so on; a last one without a partner is dropped."""
    return list(zip(sentences[::2], sentences[1::2], strict=False))
