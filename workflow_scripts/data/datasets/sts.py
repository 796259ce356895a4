"""STS benchmark (Cer et al. 2017): the similarity of two sentences, from 0 to 5."""

from pathlib import Path

from workflow_scripts.common.validation import suggest_name
from workflow_scripts.data.datasets.sentences import (
    Sentence,
    SentenceOptions,
    build_table,
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


def prepare(settings: Options, sources: dict[str, Path]) -> TableDataset:
    """Prepare the splits. Raises UserError for a missing or malformed source."""
    with settings.open_sources(sources, stand_in.write_sts, settings.seed) as files:
        found = {part: read_sts(settings, files, part) for part in PARTS}
    known = {source for rows in found.values() for source, _ in rows}
    for key in ("in_distribution", "test"):
        if (wanted := getattr(settings, key)) and wanted not in known:
            raise settings.make_error(f"key '{key}' is '{wanted}'; {suggest_name(wanted, known)}")
    inside = settings.in_distribution
    parts = {"train": ("train", inside), "valid": ("dev", inside)}
    parts |= ({"in_distribution": ("test", inside)} if inside else {}) | {
        "test": ("test", settings.test)
    }
    splits = {
        split: [row for source, row in found[part] if wanted in (None, source)]
        for split, (part, wanted) in parts.items()
    }
    return build_table(splits, None, settings, [])


def read_sts(settings: Options, sources: dict[str, Path], part: str) -> list[tuple[str, Sentence]]:
    """Read a part of upstream's archive or its file: (source, pair) of each line."""
    file = f"sts-{part}.csv"
    path = settings.find_source(sources, ARCHIVE, f"stsb/{file}")
    rows = []
    for line, row in read_tsv(path, file, (), COLUMNS):
        score = parse_number(row["score"], 0, 5, f"{path}: {file}:{line}")
        rows.append(
            (row["source"], Sentence(f"{part}-{line}", row["sentence1"], row["sentence2"], score))
        )
    return rows
