"""SST-2 (Socher et al. 2013, GLUE's version): parts of film reviews, negative or positive.

They are phrases and sentences. Splits: `train`, `valid` (GLUE's dev), `test`. Training and test
phrases may be parts of the same sentence or equal: with seed 0, 65 test phrases are also training
phrases, and 1,677 are if punctuation is ignored.
"""

from pathlib import Path

from pydantic import PositiveInt

from workflow_scripts.data.datasets.glue import read_glue
from workflow_scripts.data.datasets.sentences import SentenceOptions, build_limited_table, split_off
from workflow_scripts.data.prepared import TableDataset
from workflow_scripts.data.stand_ins import sst as stand_in

LABELS = ["negative", "positive"]


class Options(SentenceOptions):
    """Number of GLUE's training phrases that become the test set; GLUE's own has no labels.

    7,349 as in the paper.
    """

    test: PositiveInt = 7349

    @property
    def has_pairs(self) -> bool:
        """Whether the items are pairs of sentences."""
        return False

    def list_splits(self) -> list[str]:
        """Return the names of the splits."""
        return ["train", "valid", "test"]


def prepare(settings: Options, sources: dict[str, Path]) -> TableDataset:
    """Prepare the splits. Raises UserError for a missing or malformed source."""
    with settings.open_sources(sources, stand_in.write_sst2, settings.seed) as files:
        phrases = read_glue(settings, files, "sst2", "train")
        valid = read_glue(settings, files, "sst2", "dev")
    if settings.test >= len(phrases):
        raise settings.make_error(
            f"key 'test' is {settings.test}; the training set has {len(phrases)} phrases"
        )
    train, test = split_off(phrases, settings.test, settings.seed, "test")
    notes = [
        f"test: {len(test)} phrases of GLUE's training set, drawn with seed {settings.seed}; "
        "valid: GLUE's dev set"
    ]
    return build_limited_table(
        {"train": train, "valid": valid, "test": test}, LABELS, settings, notes
    )
