"""MNLI (Williams et al. 2018), trained on telephone calls and tested on letters.

Options of `prepare`, in addition to those of `datasets.sentences`:

train: number of telephone pairs sampled from upstream's training set; the others are for validation.

Splits: `train`, `valid`, `in_distribution` (telephone, matched dev set) and `test` (letters, mismatched dev set).
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import parse_as
from workflow_scripts.data.datasets import glue
from workflow_scripts.data.datasets.sentences import SentenceOptions, build_table, split_off
from workflow_scripts.data.prepared import TableDataset

WHERE = "options of workflow_scripts.data.datasets.mnli_letters"


class Options(SentenceOptions):
    """See the module's docstring."""

    train: Annotated[int, Field(gt=0)] = 80000
    origin: Literal["upstream"] = Field("upstream", alias="from")


def prepare(options: dict[str, Any], sources: dict[str, Path]) -> TableDataset:
    """Prepare the splits. Raises UserError for wrong options or a missing or malformed source."""
    settings = parse_as(Options, options, WHERE)
    found = glue.read_glue(sources, "mnli", "train", "telephone", WHERE)
    if settings.train >= len(found):
        raise UserError(f"{WHERE}: key 'train' is {settings.train}; the training set has {len(found)} pairs")
    valid, train = split_off(found, settings.train, settings.seed, "train")
    splits = {
        "train": train,
        "valid": valid,
        "in_distribution": glue.read_glue(sources, "mnli", "test", "telephone", WHERE),
        "test": glue.read_glue(sources, "mnli", "mismatched", "letters", WHERE),
    }
    return build_table(
        splits, list(glue.MNLI_LABELS), settings, [f"train: drawn with seed {settings.seed}; valid: the rest"]
    )
