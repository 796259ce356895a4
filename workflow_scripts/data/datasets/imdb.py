"""IMDB (Maas et al. 2011): whole film reviews, negative or positive, tested on the short texts of SST-2.

Splits: `train`; `valid` and `in_distribution`, the two halves of upstream's test set; `test`
(SST-2's dev set).
"""

import re
from pathlib import Path

from workflow_scripts.data.datasets import sst2
from workflow_scripts.data.datasets.glue import read_glue
from workflow_scripts.data.datasets.sentences import (
    Sentence,
    UpstreamOptions,
    build_table,
    shuffle_rows,
    split_off,
)
from workflow_scripts.data.prepared import TableDataset
from workflow_scripts.data.sources.archives import iterate_archive

ARCHIVE = "imdb/aclImdb_v1.tar.gz"
REVIEW = re.compile(r"(?:.*/)?(train|test)/(neg|pos)/(\d+)_\d+\.txt")


class Options(UpstreamOptions):
    """Options of every data set of sentences."""


def prepare(settings: Options, sources: dict[str, Path]) -> TableDataset:
    """Prepare the splits. Raises UserError for a missing source."""
    found = read_imdb(settings.find_source(sources, ARCHIVE))
    valid, in_distribution = split_off(
        found["test"], len(found["test"]) // 2, settings.seed, "halves"
    )
    # Shuffled, because neighbours of equal length, which the reader sorts by class, would be in one
    # batch.
    train = shuffle_rows(found["train"], settings.seed, "order")
    splits = {"train": train, "valid": valid, "in_distribution": in_distribution}
    notes = [
        f"valid and in_distribution: halves of upstream's test set, drawn with seed {settings.seed}"
    ]
    test = read_glue(settings, sources, "sst2", "dev")
    return build_table(splits | {"test": test}, sst2.LABELS, settings, notes)


def read_imdb(archive: Path) -> dict[str, list[Sentence]]:
    """Read both splits, sorted by class and number."""
    found: dict[str, list[tuple[str, int, str]]] = {"train": [], "test": []}
    for name, content in iterate_archive(archive):
        if match := REVIEW.fullmatch(name):
            found[match[1]].append((match[2], int(match[3]), content.read().decode("utf-8")))
    return {
        split: [
            Sentence(f"{split}-{kind}-{n}", text, None, float(kind == "pos"))
            for kind, n, text in sorted(rows)
        ]
        for split, rows in found.items()
    }
