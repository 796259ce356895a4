"""MNLI (Williams et al. 2018), trained on telephone calls and tested on letters.

Splits: `train`, `valid`, `in_distribution` (telephone, matched dev set) and `test` (letters, mismatched dev set).
"""

from pathlib import Path
from typing import Any

from pydantic import PositiveInt

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import parse_as
from workflow_scripts.data.datasets import glue
from workflow_scripts.data.datasets.sentences import UpstreamOptions, build_table, split_off
from workflow_scripts.data.prepared import TableDataset

WHERE = "options of workflow_scripts.data.datasets.mnli_letters"


class Options(UpstreamOptions):
    """Number of telephone pairs sampled from upstream's training set; the others are for validation."""

    train: PositiveInt = 80000


def prepare(options: dict[str, Any], sources: dict[str, Path]) -> TableDataset:
    """Prepare the splits. Raises UserError for wrong options or a missing or malformed source."""
    settings = parse_as(Options, options, WHERE)
    found = glue.read_glue(sources, "mnli", "train", "telephone", WHERE)
    if settings.train >= len(found):
        raise UserError(f"{WHERE}: key 'train' is {settings.train}; the training set has {len(found)} pairs")
    valid, train = split_off(found, settings.train, settings.seed, "train")
    splits = {"train": train, "valid": valid}
    splits["in_distribution"] = glue.read_glue(sources, "mnli", "test", "telephone", WHERE)
    splits["test"] = glue.read_glue(sources, "mnli", "mismatched", "letters", WHERE)
    notes = [f"train: drawn with seed {settings.seed}; valid: the rest"]
    return build_table(splits, list(glue.MNLI_LABELS), settings, notes)
