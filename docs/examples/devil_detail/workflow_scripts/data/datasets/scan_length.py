"""SCAN split by length (Newman et al. 2020).

Commands of at most `cutoff` actions train, all longer ones test.

Splits: `train`; `in_distribution`, a tenth of the short commands that is not in `train`; `test`,
the longer commands.
"""

from pathlib import Path

from pydantic import Field

from workflow_scripts.data.datasets.scan import PRIMITIVES, list_commands
from workflow_scripts.data.prepared import Seq2SeqDataset
from workflow_scripts.data.sources.task_sources import DataOptions
from workflow_scripts.data.splits import Example, sample_indices


class Options(DataOptions):
    """See the module's docstring.

    limit: number of rows of `in_distribution` and of `test`, at most.
    """

    cutoff: int = Field(26, gt=0)
    seed: int = 0
    limit: int | None = Field(None, gt=0)

    def list_splits(self) -> list[str]:
        """Return the names of the splits."""
        return ["train", "in_distribution", "test"]


def prepare(given: Options, sources: dict[str, Path]) -> Seq2SeqDataset:
    """Generate the commands and split them; there are no source files."""
    short, splits = [], {"train": [], "in_distribution": [], "test": []}
    for example in (Example(*pair) for pair in list_commands(PRIMITIVES)):
        (short if len(example.target.split()) <= given.cutoff else splits["test"]).append(example)
    held_out = set(sample_indices(short, len(short) // 10, given.seed, "in_distribution"))
    for index, example in enumerate(short):
        splits["in_distribution" if index in held_out else "train"].append(example)
    for name in ("in_distribution", "test"):
        rows = splits[name]
        chosen = sample_indices(rows, given.limit or len(rows), given.seed, f"limit/{name}")
        splits[name] = [rows[index] for index in chosen]
    notes = [
        f"{len(short)} commands of at most {given.cutoff} actions, "
        f"a tenth of them held out with seed {given.seed}"
    ]
    return Seq2SeqDataset(splits, notes, "reduced" if given.limit else "paper")
