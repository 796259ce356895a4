"""IMDB (Maas et al. 2011): whole film reviews, negative or positive.

Splits: `train`; `valid` and `in_distribution`, the two halves of upstream's test set; `test`
(SST-2's dev set, short texts).
"""

import re
from pathlib import Path

from workflow_scripts.data.datasets import sst2
from workflow_scripts.data.datasets.glue import read_glue
from workflow_scripts.data.datasets.sentences import (
    Sentence,
    UpstreamOptions,
    build_limited_table,
    shuffle_rows,
    split_off,
)
from workflow_scripts.data.prepared import TableDataset
from workflow_scripts.data.sources.archives import iterate_archive, report_broken

ARCHIVE = "imdb/aclImdb_v1.tar.gz"
REVIEW = re.compile(r"(?:.*/)?(train|test)/(neg|pos)/(\d+)_\d+\.txt")


class Options(UpstreamOptions):
    """Options of every data set of sentences."""

    @property
    def has_pairs(self) -> bool:
        """Whether the items are pairs of sentences."""
        return False

    def list_splits(self) -> list[str]:
        """Return the names of the splits."""
        return ["train", "valid", "in_distribution", "test"]


def prepare(settings: Options, sources: dict[str, Path]) -> TableDataset:
    """Prepare the splits. Raises UserError for a missing source."""
    reviews = read_imdb(settings.find_source(sources, ARCHIVE))
    half = len(reviews["test"]) // 2
    valid, in_distribution = split_off(reviews["test"], half, settings.seed, "halves")
    splits = {
        # Shuffled, because neighbours of equal length, which the reader sorts by class, would be in
        # one batch.
        "train": shuffle_rows(reviews["train"], settings.seed, "order"),
        "valid": valid,
        "in_distribution": in_distribution,
        "test": read_glue(settings, sources, "sst2", "dev"),
    }
    notes = [
        f"valid and in_distribution: halves of upstream's test set, drawn with seed {settings.seed}"
    ]
    return build_limited_table(splits, sst2.LABELS, settings, notes)


def read_imdb(archive: Path) -> dict[str, list[Sentence]]:
    """Read both splits, sorted by class and number. Raises UserError for a broken archive."""
    files: dict[str, list[tuple[str, int, str]]] = {"train": [], "test": []}
    for name, content in iterate_archive(archive):
        if match := REVIEW.fullmatch(name):
            split, kind, number = match.groups()
            with report_broken(archive, (UnicodeDecodeError,)):
                text = content.read().decode("utf-8")
            files[split].append((kind, int(number), text))
    reviews: dict[str, list[Sentence]] = {}
    for split, rows in files.items():
        reviews[split] = []
        for kind, number, text in sorted(rows):
            label = float(kind == "pos")
            reviews[split].append(Sentence(f"{split}-{kind}-{number}", text, None, label))
    return reviews
