"""The paper's significance test: a bootstrap over test examples, of each row against its baseline.

It takes the trained models as given; a table marks a difference only if it is one over seeds too.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_json
from workflow_scripts.common.result_folders import ScaleFolder
from workflow_scripts.evaluation.predictions import read_predictions
from workflow_scripts.evaluation.statistics import Effect, bootstrap_over_examples
from workflow_scripts.reporting.evidence.pairing import compute_difference
from workflow_scripts.reporting.tables.cells import MEASURED, Cell

ALPHA = 0.01  # the paper's (footnote 8)


@dataclass(frozen=True)
class ExampleTest:
    """The bootstrap p in either direction with its number of examples; the effect over seeds."""

    p_better: float
    p_worse: float
    examples: int
    over_seeds: Effect

    @property
    def over_examples(self) -> str:
        """Return `better`, `worse` or an empty string at the paper's level."""
        if self.p_better < ALPHA:
            return "better"
        if self.p_worse < ALPHA:
            return "worse"
        return ""

    @property
    def outcome(self) -> str:
        """Return `over_examples` if the 95% interval over seeds is on the same side of 0.

        A single seed has none.
        """
        interval = self.over_seeds.compute_interval()
        if interval is None:
            return ""
        low, high = interval
        if self.over_examples == "better" and low > 0:
            return "better"
        if self.over_examples == "worse" and high < 0:
            return "worse"
        return ""


def compare_with(baseline: str, cells: list[Cell], results: ScaleFolder) -> dict[str, ExampleTest]:
    """Test every exact match on real data against the row `baseline` in its column.

    Returns key of a cell -> its test; there is none for the baseline itself, nor for a cell without
    a tested baseline in its column. Raises UserError if predictions are missing, broken, or of
    another number of examples than those of the baseline.
    """
    tests: dict[str, ExampleTest] = {}
    tested_cells = [cell for cell in cells if is_tested(cell)]
    references = {cell.column: cell for cell in tested_cells if cell.row == baseline}
    for cell in tested_cells:
        reference = references.get(cell.column)
        if reference is None or reference is cell:
            continue
        left = read_correctness(results, cell)
        right = read_correctness(results, reference)
        if left.shape[1] != right.shape[1]:
            counts = f"{left.shape[1]} examples against {right.shape[1]}"
            raise UserError(f"{cell.key}: {counts} of {baseline}; evaluate both on the same data")
        paired = cell.weights == reference.weights != ""
        over_seeds = compute_difference(cell.seeds, reference.seeds, paired)
        p_better, p_worse = bootstrap_over_examples(left, right)
        tests[cell.key] = ExampleTest(p_better, p_worse, left.shape[1], over_seeds)
    return tests


def is_tested(cell: Cell) -> bool:
    """Whether the cell is an exact match of plain runs on real data."""
    if cell.status != MEASURED or cell.metric != "exact_match":
        return False
    if cell.protocol == "stand_in":
        return False
    return cell.selection.intervention is None and cell.over is None


def read_correctness(results: ScaleFolder, cell: Cell) -> np.ndarray:
    """Return whether each example of a cell was right, as 0 or 1: [seeds, N]."""
    split = cell.selection.split
    subset = cell.selection.subset
    variant = cell.variant_key
    rows = []
    for seed in cell.seeds:
        file = results.run(variant.make_run(seed)).evaluation.predictions
        splits, subsets, correct = _read_predictions(file, cell.selection.readout)
        is_of_cell = splits == split
        if subset != "all":
            # A subset is a kind of example, or a group of kinds.
            dataset = read_json(results.data(variant.task).manifest)
            kinds = dataset.get("subset_groups", {}).get(subset, [subset])
            is_of_cell &= np.isin(subsets, kinds)
        if not is_of_cell.any():
            place = f"split {split}, subset {subset}"
            raise UserError(f"{file} has no examples of {place}; evaluate the run again")
        rows.append(correct[is_of_cell])
    return np.stack(rows).astype(float)


@lru_cache(maxsize=64)
def _read_predictions(file: Path, readout: str | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Read split, subset and correctness of predictions [N], in the order of the data.

    They are those of the best checkpoint, or of the one that `readout` names.
    """
    table = read_predictions(file, readout)
    split = table["split"].to_numpy(zero_copy_only=False).astype(str)
    subset = table["subset"].to_numpy(zero_copy_only=False).astype(str)
    correct = table["correct"].to_numpy(zero_copy_only=False)
    return split, subset, correct
