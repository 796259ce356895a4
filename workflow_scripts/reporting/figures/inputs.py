"""What a figure reads: its entry in displays.yaml, files of analyses, scores of runs, published numbers."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import MissingFileError, verify_checksum
from workflow_scripts.common.options import merge_options
from workflow_scripts.config.paths import run_folder
from workflow_scripts.config.runs import Run
from workflow_scripts.evaluation.published import Published
from workflow_scripts.reporting.evidence.evidence import Evidence
from workflow_scripts.reporting.evidence.selection import select_rows

RUN_COLUMNS = ["task", "method", "variant", "seed"]


@dataclass(frozen=True)
class Inputs:
    """One figure at one scale. `requested` are the runs of its panels that the scale asks for.

    Each entry of `display["runs"]` names a task, a method and a variant, and says how the figure shows them.
    """

    display: dict[str, Any]
    requested: list[Run]
    results: Path
    evidence: Evidence

    def read_options(self, **defaults: Any) -> dict[str, Any]:
        """The options of the display, over `defaults`. Raises UserError for an unknown one."""
        return merge_options(self.display.get("options", {}), **defaults)

    @property
    def scale(self) -> str:
        return self.evidence.scale

    def read_table(self, name: str) -> pandas.DataFrame:
        """<name>.csv of all analyses of the figure, one under the other."""
        folder = self.results / "analyses" / self.evidence.paper
        tables = [_read(folder / analysis / f"{name}.csv") for analysis in self.evidence.analyses]
        # One without rows has columns of no type, which would make those of the others columns of objects.
        return pandas.concat([table for table in tables if len(table)] or tables, ignore_index=True)

    def select_accuracies(self) -> pandas.DataFrame:
        """Exact match (percent) on the whole test split: task, method, variant, seed, value."""
        return self.select_scores("exact_match")[[*RUN_COLUMNS, "value"]]

    def select_scores(self, metric: str, intervention: str | None = None, split: str = "test") -> pandas.DataFrame:
        """A score of the runs on a whole split, without an intervention or under one, of a run's own checkpoint where
        it has several: task, method, variant, seed, layer, pooling, rate, intervention_seed, item_set, readout, value.
        """
        wanted = {"split": split, "subset": "all", "metric": metric, "intervention": intervention}
        rows = [row for scores in self.evidence.scores.values() for row in select_rows(scores, wanted)]
        columns = ["layer", "pooling", "rate", "intervention_seed", "item_set", "readout", "value"]
        return pandas.DataFrame(rows, columns=[*RUN_COLUMNS, *columns])

    def select_analysis_scores(self, metric: str) -> pandas.DataFrame:
        """A score of the figure's analyses: task, method, variant, seed, value."""
        rows = [row for scores in self.evidence.analyses.values() for row in scores if row["metric"] == metric]
        return pandas.DataFrame(rows, columns=[*RUN_COLUMNS, "value"])

    def read_curves(self, name: str) -> pandas.DataFrame:
        """The values called `name` in training.csv: task, method, variant, seed, step, value."""
        tables = [pandas.DataFrame(columns=[*RUN_COLUMNS, "step", "value"])]
        for run in self.requested:
            table = _read(self.results / run_folder(run) / "training.csv")
            of_run = {"task": run.task, "method": run.method, "variant": run.variant, "seed": run.seed}
            tables.append(table.loc[table["name"] == name, ["step", "value"]].assign(**of_run))
        return pandas.concat(tables[1:] or tables, ignore_index=True)

    def list_seeds(self, entry: dict[str, Any]) -> list[int]:
        """The seeds of one entry of `runs`, lowest first; none if the scale does not run it."""
        name = (entry["task"], entry["method"], entry["variant"])
        return sorted(run.seed for run in self.requested if run.unseeded == name)

    def find_median_seed(self, entry: dict[str, Any]) -> int | None:
        """The seed of an entry of `runs` with the median test accuracy: of an even number the lower of the two in the
        middle, of equal ones the lowest seed; None if the scale does not run it."""
        table = select_entry(self.select_accuracies(), entry).sort_values(["value", "seed"])
        if table.empty:
            return None
        median = table["value"].iloc[(len(table) - 1) // 2]
        return int(table.loc[table["value"] == median, "seed"].iloc[0])

    def describe_seed(self, entry: dict[str, Any]) -> str:
        """`median seed 22`, or `seed 21` where there is no other."""
        return f"{'median ' if len(self.list_seeds(entry)) > 1 else ''}seed {self.find_median_seed(entry)}"

    def get_published(self, cell: str) -> Published:
        """A published number, `<display>/<row>/<column>/<metric>`. Raises UserError if there is none."""
        key = tuple(cell.split("/"))
        if key not in self.evidence.published:
            raise UserError(
                f"displays.yaml: a figure shows the published number {cell}, which published.csv does not have"
            )
        return self.evidence.published[key]


def select_entry(table: pandas.DataFrame, entry: dict[str, Any], seed: int | None = None) -> pandas.DataFrame:
    """The rows of `table` that belong to an entry of `runs`, and to one seed if given."""
    wanted = pandas.Series(True, table.index)
    for name in ("task", "method", "variant"):
        wanted &= table[name] == entry[name]
    return table[wanted if seed is None else wanted & (table["seed"] == seed)]


def _read(file: Path) -> pandas.DataFrame:
    verify_checksum(file)
    try:
        # A word of a vocabulary may be spelt like one of pandas' signs for "missing".
        return pandas.read_csv(file, keep_default_na=False, na_values=[""])
    except FileNotFoundError as error:
        raise MissingFileError(file) from error
