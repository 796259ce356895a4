"""MNLI (Williams et al. 2018) of one genre, tested on another: telephone calls, and letters.

Options of `prepare` beside those of `data.sentences`:

train: how many pairs of the telephone genre are drawn from the training set; those left over are for validation.

Splits: `train`, `valid`, `in_distribution` (telephone, of the matched dev set) and `test` (letters, of the mismatched).
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import checked
from workflow_scripts.data.datasets import glue
from workflow_scripts.data.datasets.sentences import SentenceOptions, table, taken_out
from workflow_scripts.data.prepared import TableDataset

WHERE = "options of workflow_scripts.data.datasets.mnli_letters"


class Options(SentenceOptions):
    """See the module's docstring."""

    train: Annotated[int, Field(gt=0)] = 80000
    origin: Literal["upstream"] = Field("upstream", alias="from")


def prepare(options: dict[str, Any], sources: dict[str, Path]) -> TableDataset:
    """The splits above. Raises UserError for wrong options, and when the source is missing or malformed."""
    settings = checked(Options, options, WHERE)
    found = glue.read(sources, "mnli", "train", "telephone", WHERE)
    if settings.train >= len(found):
        raise UserError(f"{WHERE}: key 'train' is {settings.train}; the training set has {len(found)} pairs")
    valid, train = taken_out(found, settings.train, settings.seed, "train")
    splits = {
        "train": train,
        "valid": valid,
        "in_distribution": glue.read(sources, "mnli", "test", "telephone", WHERE),
        "test": glue.read(sources, "mnli", "mismatched", "letters", WHERE),
    }
    return table(splits, list(glue.MNLI_LABELS), settings, [f"train: drawn with seed {settings.seed}; valid: the rest"])
