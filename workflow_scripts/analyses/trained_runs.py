"""What the analyses share: trained runs, loaded when needed, and the scores and files that an analysis returns."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas
from torch import nn

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.prepared import read_table
from workflow_scripts.tasks.batching import EOS
from workflow_scripts.tasks.seq2seq.checkpoint import load_run

RUN_COLUMNS = ["task", "method", "variant", "seed"]


@dataclass(frozen=True)
class TrainedRun:
    """A run that has been trained: `folder` is its runs/ folder, `data` the prepared data of its task."""

    task: str
    method: str
    variant: str
    seed: int
    protocol: str
    folder: Path
    data: Path

    def __str__(self) -> str:
        return f"{self.task}/{self.method}/{self.variant}/seed-{self.seed}"

    @property
    def columns(self) -> dict[str, str | int]:
        """The columns that name the run in every table of an analysis."""
        return {name: getattr(self, name) for name in RUN_COLUMNS}

    def load(self) -> tuple[nn.Module, list[str]]:
        """(model on the CPU in eval mode, source words by id). Raises UserError when the run cannot be read."""
        model, vocabulary, _ = load_run(self.folder, self.data)
        return model, vocabulary["source"]

    def read_pairs(self, split: str) -> pandas.DataFrame:
        """The `source` and `target` strings of a split of the data. Raises UserError when there is no such split."""
        return read_table(self.data, split, ["source", "target"]).to_pandas()

    def list_sentences(self, split: str, words: Sequence[str]) -> list[str]:
        """The distinct source sentences of a split that are made of `words`, in its order."""
        known = set(words)
        return [
            source for source in dict.fromkeys(self.read_pairs(split)["source"]) if known.issuperset(source.split())
        ]


@dataclass
class AnalysisResult:
    """What an analysis found: rows of scores.csv, and tables to write as <name>.csv."""

    scores: list[dict[str, Any]]
    files: dict[str, pandas.DataFrame] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def make_score_row(run: TrainedRun, metric: str, value: float, unit: str, n: int, **columns: Any) -> dict[str, Any]:
    """One row of scores.csv; `n` counts what was averaged. The subset is "all" unless `columns` says otherwise."""
    row = {**run.columns, "split": "", "subset": "all", "metric": metric, "value": float(value), "unit": unit, "n": n}
    return {**row, "protocol": run.protocol, **columns}


def stack_tables(tables: Sequence[pandas.DataFrame], columns: Sequence[str]) -> pandas.DataFrame:
    """The tables under each other; for none, a table without rows that has the columns of a run and `columns`."""
    return pandas.concat(tables or [pandas.DataFrame(columns=[*RUN_COLUMNS, *columns])], ignore_index=True)


def encode_sentence(sentence: str, words: Sequence[str], run: TrainedRun) -> list[int]:
    """Ids of the sentence, closed by EOS. Raises UserError for a word that the run has not been trained on."""
    index = {word: id_ for id_, word in enumerate(words)}
    for word in sentence.split():
        if word not in index:
            raise UserError(
                f"run {run} has no source word '{word}' (of '{sentence}'); take another sentence in displays.yaml"
            )
    return [*(index[word] for word in sentence.split()), EOS]
