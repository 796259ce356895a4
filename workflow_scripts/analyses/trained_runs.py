"""What an analysis reads: trained runs, with the rows and tables that name them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import pandas
import pyarrow as pa

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.parquet_files import read_parquet
from workflow_scripts.common.result_folders import DataFolder, RunFolder
from workflow_scripts.common.run_names import Run
from workflow_scripts.data.prepared import read_table
from workflow_scripts.data.token_ids import EOS
from workflow_scripts.evaluation.scores import Score, make_scores
from workflow_scripts.models.weights import load_weight_file
from workflow_scripts.tasks.seq2seq.checkpoint import load_run

RUN_COLUMNS = ["task", "method", "variant", "seed"]


@dataclass(frozen=True)
class TrainedRun:
    """A trained run: `folder` is its folder under runs/, `data` the prepared data of its task.

    `series` and `readout` are those of its entry of `runs`.
    """

    task: str
    method: str
    variant: str
    seed: int
    protocol: str
    folder: Path
    data: Path
    series: str = ""
    readout: str | None = None

    def __str__(self) -> str:
        return str(self.run)

    @property
    def run(self) -> Run:
        """The name of the run."""
        return Run(self.task, self.method, self.variant, self.seed)

    @property
    def files(self) -> RunFolder:
        """The files of the run."""
        return RunFolder(self.folder)

    @property
    def dataset(self) -> Path:
        """The manifest of the data."""
        return DataFolder(self.data).manifest

    @property
    def columns(self) -> dict[str, str | int]:
        """The columns that name the run in every table of an analysis."""
        return {name: getattr(self, name) for name in RUN_COLUMNS}

    def make_scores(
        self, values: Mapping[str, tuple[float | None, str, int]], **columns: Any
    ) -> list[Score]:
        """Make scores of this run with more `columns`.

        values: see `evaluation.scores.make_scores`.
        """
        return make_scores({**self.columns, "protocol": self.protocol, **columns}, values)

    def load(self) -> tuple[Any, list[str]]:
        """Return (model on the CPU in eval mode, source words by id).

        Its weights are those that validation chose, or those that `readout` names. Raises UserError
        for a damaged run, or for weights that it did not keep.
        """
        model, vocabulary, run = load_run(self.folder, self.data)
        if self.readout is not None:
            kept = run.spec.kept_checkpoints
            if self.readout not in kept:
                raise UserError(
                    f"displays.yaml: {self} did not keep the weights '{self.readout}'; "
                    f"it has: {', '.join(kept) or 'those that validation chose'}"
                )
            load_weight_file(model, self.files.weights_at(self.readout))
        return model, vocabulary["source"]

    def read_predictions(self, **options: Any) -> pa.Table:
        """Read its predictions on items; `options` are those of `read_parquet`.

        Raises UserError if they are missing, damaged or changed.
        """
        path = self.files.evaluation.predictions
        if not path.is_file():
            raise UserError(f"{path} does not exist; evaluate {self} first")
        return read_parquet(path, **options)

    def read_pairs(self, split: str) -> pandas.DataFrame:
        """Read the `source` and `target` strings of a split.

        Raises UserError if there is no such split.
        """
        return read_table(self.data, split, ["source", "target"]).to_pandas()


def group_runs(runs: Sequence[TrainedRun], *names: str) -> Iterator[tuple[tuple, list[TrainedRun]]]:
    """Yield (values of the fields `names`, the runs that have them), in the order of the values."""
    fields = attrgetter(*names)
    for values, group in groupby(sorted(runs, key=fields), key=fields):
        yield values, list(group)


def stack_tables(tables: Sequence[pandas.DataFrame], columns: Sequence[str]) -> pandas.DataFrame:
    """Concatenate tables.

    Without tables, return an empty one with the columns of a run and `columns`.
    """
    if not tables:
        tables = [pandas.DataFrame(columns=[*RUN_COLUMNS, *columns])]
    return pandas.concat(tables, ignore_index=True)


def encode_sentences(
    sentences: Sequence[str], words: Sequence[str], run: TrainedRun
) -> list[list[int]]:
    """Return the word ids of each sentence, with EOS.

    Raises UserError for a word that `run` was not trained on.
    """
    id_of = {word: id_ for id_, word in enumerate(words)}
    encoded = []
    for sentence in sentences:
        ids = []
        for word in sentence.split():
            if word not in id_of:
                raise UserError(
                    f"run {run} has no source word '{word}' (of '{sentence}'); "
                    "take another sentence in displays.yaml"
                )
            ids.append(id_of[word])
        encoded.append([*ids, EOS])
    return encoded


def find_most_frequent(counts: Counter[str]) -> str:
    """Return the name with the highest count, of equals the first in the alphabet."""
    return min(counts, key=lambda name: (-counts[name], name))
