"""The paper's significance test: a bootstrap over test examples, of each row of a table against its baseline.

It takes the trained models as given; a table marks a difference only if it is one over seeds too.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import MissingFileError, read_json, verify_checksum
from workflow_scripts.config.paths import data_folder, evaluation_folder
from workflow_scripts.evaluation.statistics import Effect, bootstrap_over_examples
from workflow_scripts.reporting.evidence.pairing import compute_difference
from workflow_scripts.reporting.tables.cells import MEASURED, Cell

ALPHA = 0.01  # the paper's (footnote 8)


@dataclass(frozen=True)
class ExampleTest:
    """The bootstrap p in either direction with the number of examples, and the difference over seeds."""

    p_better: float
    p_worse: float
    examples: int
    over_seeds: Effect

    @property
    def over_examples(self) -> str:
        """Return `better`, `worse` or an empty string at the paper's level."""
        return "better" if self.p_better < ALPHA else "worse" if self.p_worse < ALPHA else ""

    @property
    def outcome(self) -> str:
        """Return `over_examples` if the 95% interval over seeds is on the same side of 0; a single seed has none."""
        low, high = self.over_seeds.low, self.over_seeds.high
        seen = low is not None and {"better": low > 0, "worse": high < 0}.get(
            self.over_examples, False
        )
        return self.over_examples if seen else ""


def compare_with(baseline: str, cells: list[Cell], results: Path) -> dict[str, ExampleTest]:
    """Test every exact match on real data against the cell of the row `baseline` in the same column, by key."""
    tests: dict[str, ExampleTest] = {}
    fit = [cell for cell in cells if cell.status == MEASURED and cell.metric == "exact_match"]
    fit = [
        cell
        for cell in fit
        if cell.protocol != "stand_in" and not {"intervention", "over"} & cell.selection.keys()
    ]
    references = {cell.column: cell for cell in fit if cell.row == baseline}
    for cell in fit:
        reference = references.get(cell.column, cell)
        if reference is cell:
            continue
        left, right = read_correctness(results, cell), read_correctness(results, reference)
        if left.shape[1] != right.shape[1]:
            counts = f"{left.shape[1]} examples against {right.shape[1]}"
            raise UserError(f"{cell.key}: {counts} of {baseline}; evaluate both on the same data")
        paired = cell.weights == reference.weights != ""
        over_seeds = compute_difference(cell.seeds, reference.seeds, paired)
        tests[cell.key] = ExampleTest(
            *bootstrap_over_examples(left, right), left.shape[1], over_seeds
        )
    return tests


def read_correctness(results: Path, cell: Cell) -> np.ndarray:
    """Return whether each example of the cell's split and subset was right, as 0 or 1: [seeds, N]."""
    names = ("task", "method", "variant", "split", "subset")
    task, method, variant, split, subset = (cell.selection[name] for name in names)
    rows = []
    for seed in cell.seeds:
        file = (
            results
            / evaluation_folder(f"{task}/{method}/{variant}/seed-{seed}")
            / "predictions.parquet"
        )
        splits, subsets, correct = _predictions(file, cell.selection.get("readout"))
        chosen = splits == split
        if subset != "all":
            # A subset is a kind of example, or a group of kinds.
            groups = read_json(results / data_folder(task) / "dataset.json").get(
                "subset_groups", {}
            )
            chosen &= np.isin(subsets, groups.get(subset, [subset]))
        if not chosen.any():
            raise UserError(
                f"{file} has no examples of split {split}, subset {subset}; evaluate the run again"
            )
        rows.append(correct[chosen])
    return np.stack(rows).astype(float)


@lru_cache(maxsize=64)
def _predictions(file: Path, readout: str | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Read split, subset and correctness of the best checkpoint's predictions, or `readout`'s, in the data's order."""
    verify_checksum(file)
    try:
        columns = (
            "split",
            "readout",
            "row",
            "subset",
            "correct",
        )  # no readout where a run keeps one checkpoint only
        table = pq.read_table(
            file, columns=[name for name in columns if name in pq.read_schema(file).names]
        )
    except FileNotFoundError as error:
        raise MissingFileError(file) from error
    except pa.ArrowInvalid as error:
        raise UserError(f"{file} is no predictions.parquet; delete it and make it again") from error
    if "readout" in table.column_names:
        table = table.filter(
            pc.field("readout").is_null() if readout is None else pc.field("readout") == readout
        )
    table = table.sort_by([("split", "ascending"), ("row", "ascending")])
    split, subset, correct = (
        table[name].to_numpy(zero_copy_only=False) for name in ("split", "subset", "correct")
    )
    return split.astype(str), subset.astype(str), correct
