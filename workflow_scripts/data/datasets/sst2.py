"""SST-2 (Socher et al. 2013, GLUE's version): phrases and sentences of film reviews, negative or positive.

Options of `prepare`, in addition to those of `datasets.sentences`:

test: number of phrases of GLUE's training set that become the test set, because GLUE's own test set has no labels. The
    paper trains on 60,000 phrases and tests on the other 7,349.

Splits: `train`, `valid` (GLUE's dev), `test`. Training and test phrases may be parts of the same sentence or equal:
with seed 0, 65 test phrases are also training phrases, and 1,677 are if punctuation is ignored.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import parse_as
from workflow_scripts.data.datasets.sentences import (
    Sentence,
    SentenceOptions,
    build_table,
    parse_class,
    read_tsv,
    split_off,
)
from workflow_scripts.data.prepared import TableDataset
from workflow_scripts.data.sources.task_sources import find_source, open_sources
from workflow_scripts.data.stand_ins import sst2 as stand_in

WHERE = "options of workflow_scripts.data.datasets.sst2"
ARCHIVE = "sst2/SST-2.zip"
LABELS = ["negative", "positive"]


class Options(SentenceOptions):
    """See the module's docstring."""

    test: Annotated[int, Field(gt=0)] = 7349


def prepare(options: dict[str, Any], sources: dict[str, Path]) -> TableDataset:
    """Prepare the splits. Raises UserError for wrong options or a missing or malformed source."""
    settings = parse_as(Options, options, WHERE)
    with open_sources(settings.origin, sources, stand_in.write_sst2, settings.seed) as files:
        found = read_sst2(files)
    if settings.test >= len(found["train"]):
        raise UserError(f"{WHERE}: key 'test' is {settings.test}; the training set has {len(found['train'])} phrases")
    train, test = split_off(found["train"], settings.test, settings.seed, "test")
    notes = [
        f"test: {len(test)} phrases of GLUE's training set, drawn with seed {settings.seed}; valid: GLUE's dev set"
    ]
    return build_table({"train": train, "valid": found["dev"], "test": test}, LABELS, settings, notes)


def read_sst2(sources: dict[str, Path], parts: Sequence[str] = ("train", "dev")) -> dict[str, list[Sentence]]:
    """Read the phrases of some parts of GLUE's set, from its archive or its two files."""
    return {
        split: [
            Sentence(
                f"{split}-{line}",
                row["sentence"].strip(),
                None,
                parse_class(row["label"], ("0", "1"), f"{path}: {split}.tsv:{line}"),
            )
            for line, row in read_tsv(path, f"{split}.tsv")
        ]
        for split in parts
        for path in [find_source(sources, WHERE, ARCHIVE, f"sst2/{split}.tsv")]
    }
