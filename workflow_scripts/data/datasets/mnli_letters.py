"""MNLI (Williams et al. 2018), trained on telephone calls and tested on letters.

Splits: `train`, `valid`, `in_distribution` (telephone, matched dev set) and `test` (letters,
mismatched dev set).
"""

from pathlib import Path

from pydantic import PositiveInt

from workflow_scripts.data.datasets.glue import MNLI_LABELS, read_glue
from workflow_scripts.data.datasets.sentences import UpstreamOptions, build_limited_table, split_off
from workflow_scripts.data.prepared import TableDataset


class Options(UpstreamOptions):
    """Number of telephone pairs sampled from upstream's training set.

    The others are for validation.
    """

    train: PositiveInt = 80000

    @property
    def has_pairs(self) -> bool:
        """Whether the items are pairs of sentences."""
        return True

    def list_splits(self) -> list[str]:
        """Return the names of the splits."""
        return ["train", "valid", "in_distribution", "test"]


def prepare(settings: Options, sources: dict[str, Path]) -> TableDataset:
    """Prepare the splits. Raises UserError for a missing or malformed source."""
    telephone = read_glue(settings, sources, "mnli", "train", "telephone")
    if settings.train >= len(telephone):
        raise settings.make_error(
            f"key 'train' is {settings.train}; the training set has {len(telephone)} pairs"
        )
    valid, train = split_off(telephone, settings.train, settings.seed, "train")
    splits = {
        "train": train,
        "valid": valid,
        "in_distribution": read_glue(settings, sources, "mnli", "test", "telephone"),
        "test": read_glue(settings, sources, "mnli", "mismatched", "letters"),
    }
    notes = [f"train: drawn with seed {settings.seed}; valid: the rest"]
    return build_limited_table(splits, list(MNLI_LABELS), settings, notes)
