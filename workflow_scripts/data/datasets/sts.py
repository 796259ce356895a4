"""STS benchmark (Cer et al. 2017): the similarity of two sentences, from 0 to 5."""

from pathlib import Path
from typing import NamedTuple

from workflow_scripts.common.validation import suggest_name
from workflow_scripts.data.datasets.sentences import (
    Sentence,
    SentenceOptions,
    build_limited_table,
    parse_number,
    read_tsv,
)
from workflow_scripts.data.prepared import TableDataset
from workflow_scripts.data.stand_ins import sts as stand_in

ARCHIVE = "stsb/Stsbenchmark.tar.gz"
PARTS = ("train", "dev", "test")
COLUMNS = ("genre", "source", "year", "id", "score", "sentence1", "sentence2")


class Options(SentenceOptions):
    """Sources of sentences, e.g. `images`; None: all.

    `in_distribution` is the source of `train`, `valid` and a split of this name, made from
    upstream's test part.
    """

    in_distribution: str | None = None
    test: str | None = None

    @property
    def has_pairs(self) -> bool:
        """Whether the items are pairs of sentences."""
        return True

    def list_splits(self) -> list[str]:
        """Return the names of the splits."""
        if self.in_distribution:
            return ["train", "valid", "in_distribution", "test"]
        return ["train", "valid", "test"]


class SourcedPair(NamedTuple):
    """A pair and the source of its sentences, e.g. `images`."""

    source: str
    sentence: Sentence


def prepare(settings: Options, sources: dict[str, Path]) -> TableDataset:
    """Prepare the splits. Raises UserError for a missing or malformed source."""
    with settings.open_sources(sources, stand_in.write_sts, settings.seed) as files:
        train, dev, test = (read_sts(settings, files, part) for part in PARTS)
    inside = settings.in_distribution
    outside = settings.test
    known_sources = {pair.source for pair in (*train, *dev, *test)}
    for key, source in {"in_distribution": inside, "test": outside}.items():
        if source and source not in known_sources:
            nearest = suggest_name(source, known_sources)
            raise settings.make_error(f"key '{key}' is '{source}'; {nearest}")
    splits = {"train": select_source(inside, train), "valid": select_source(inside, dev)}
    if inside:
        splits["in_distribution"] = select_source(inside, test)
    splits["test"] = select_source(outside, test)
    return build_limited_table(splits, None, settings, [])


def select_source(source: str | None, pairs: list[SourcedPair]) -> list[Sentence]:
    """Return the pairs of one source, or all if it is None."""
    return [pair.sentence for pair in pairs if source in (None, pair.source)]


def read_sts(settings: Options, sources: dict[str, Path], part: str) -> list[SourcedPair]:
    """Read a part of upstream's archive or its file."""
    file = f"sts-{part}.csv"
    path = settings.find_source(sources, ARCHIVE, f"stsb/{file}")
    pairs = []
    for line, row in read_tsv(path, file, (), COLUMNS):
        score = parse_number(row["score"], 0, 5, f"{path}: {file}:{line}")
        sentence = Sentence(f"{part}-{line}", row["sentence1"], row["sentence2"], score)
        pairs.append(SourcedPair(row["source"], sentence))
    return pairs
