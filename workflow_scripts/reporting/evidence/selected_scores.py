"""Scores of runs and of analyses, and those that a cell selects."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import MissingFileError
from workflow_scripts.common.run_names import VariantKey
from workflow_scripts.config.display_schema import SELECTORS, TableCell
from workflow_scripts.evaluation.scores import Score, read_scores

DEPTH = re.compile(r"\d+(\.\d+)?%")


@dataclass(frozen=True)
class ScoreSelection:
    """The columns of scores that a cell fixes; None leaves a column free.

    But None as `intervention` selects scores without an intervention, and None as `readout` those
    of the best checkpoint, if there are any. layer: a block, or a depth such as "25%", which is the
    measured block nearest to that share of the deepest one.
    """

    task: str | None = None
    method: str | None = None
    variant: str | None = None
    metric: str | None = None
    split: str | None = None
    subset: str | None = None
    intervention: str | None = None
    layer: int | str | None = None
    pooling: str | None = None
    rate: float | None = None
    intervention_seed: int | None = None
    item_set: str | None = None
    readout: str | None = None

    @property
    def is_of_runs(self) -> bool:
        """Whether the scores are those of runs, not of an analysis as a whole."""
        return self.method is not None

    @property
    def variant_key(self) -> VariantKey:
        """The variant whose scores are selected."""
        assert self.task and self.method and self.variant, f"{self} is of no variant"
        return VariantKey(self.task, self.method, self.variant)

    @property
    def fixed(self) -> dict[str, Any]:
        """Column -> value, of the columns that are not None."""
        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in columns.items() if value is not None}


def make_selection(entry: TableCell, variant: VariantKey | None = None) -> ScoreSelection:
    """Return what a cell of displays.yaml selects; `variant`: the one whose scores it shows.

    Without a variant the scores are those of an analysis as a whole, of the cell's task if it has
    one.
    """
    columns = {name: getattr(entry, name) for name in SELECTORS}
    metric = entry.metric or ""
    if variant is None:
        return ScoreSelection(task=entry.task, metric=metric, **columns)
    return ScoreSelection(*variant, metric=metric, **columns)


@dataclass(frozen=True)
class AbsentScore:
    """A score that is undefined for a seed. `columns`: those of scores.csv that it would have."""

    seed: int
    reason: str
    columns: Mapping[str, Any]

    def matches(self, selection: ScoreSelection) -> bool:
        """Return whether a cell with this selection would show the score, if it were defined.

        Compared are the columns by which the scores of an evaluation differ; undefined scores of
        interventions are not recorded.
        """
        for name in ("metric", "split", "subset", "readout"):
            wanted = getattr(selection, name)
            if wanted is not None and self.columns.get(name) != wanted:
                return False
        return True


def load_scores(path: Path) -> list[Score]:
    """Load scores.csv. Raises UserError with file and line.

    Several displays show the same file: one that has not changed is read once per process.
    """
    try:
        state = path.stat()
    except FileNotFoundError as error:
        raise MissingFileError(path) from error
    return list(_load_once(path, state.st_mtime_ns, state.st_size))


@cache
def _load_once(path: Path, time: int, size: int) -> tuple[Score, ...]:
    """Load scores.csv as it is at a time of change and with a size."""
    return tuple(read_scores(path))


def select_scores(scores: Iterable[Score], selection: ScoreSelection) -> list[Score]:
    """Select the scores of a cell.

    A selection without a readout takes the scores without one, which are those of the best
    checkpoint; only if there are none, it takes the scores of all readouts. Of two layers equally
    near to a depth it takes the earlier.
    """
    wanted = selection.fixed | {"intervention": selection.intervention}
    wanted.pop("layer", None)
    get_columns = attrgetter(*wanted)
    wanted_values = tuple(wanted.values())
    if len(wanted) == 1:  # attrgetter then returns the value alone
        wanted_values = selection.intervention
    selected = [score for score in scores if get_columns(score) == wanted_values]
    if selection.readout is None:
        of_best_checkpoint = [score for score in selected if score.readout is None]
        selected = of_best_checkpoint or selected
    layer = selection.layer
    if layer is None or not selected:
        return selected
    if isinstance(layer, str):
        layers = [score.layer for score in selected if score.layer is not None]
        layer = find_nearest_layer(layer, layers)
    return [score for score in selected if score.layer == layer]


def find_nearest_layer(depth: str, layers: list[int]) -> int:
    """Return the measured layer nearest to a depth such as "25%" of the deepest one."""
    if not DEPTH.fullmatch(depth):
        rule = "is neither a number of a block nor a depth like 25%"
        raise UserError(f"displays.yaml: layer '{depth}' {rule}")
    exact_layer = float(depth.removesuffix("%")) / 100 * max(layers)
    return min(layers, key=lambda layer: (abs(layer - exact_layer), layer))


def matches_intervention(score: Score, selection: ScoreSelection, analysed: bool = False) -> bool:
    """Whether a score has the rate and the intervention of a cell (an analysis has several)."""
    if not analysed and score.intervention != selection.intervention:
        return False
    return score.rate in (None, selection.rate)


def has_empty_item_set(scores: Iterable[Score], selection: ScoreSelection) -> bool:
    """Whether a cell's intervention was measured, but no item was right before it.

    Then there is no share of such items.
    """
    if not (selection.item_set or "").endswith("_correct"):
        return False
    # An intervention also has scores on all items; an analysis of such a set has its size.
    return any(score.n == 0 or score.item_set == "all" for score in scores)
