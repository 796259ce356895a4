"""Gain of a variant over another, with intervals over training seeds, and over training seeds and test items.

An interval over seeds holds for other trainings on the same items. If all trainings have the same items, the interval
over both is that of a two-way analysis of variance. If items differ by seed, the variances of two jackknives, over
seeds and over items, are added, which is conservative: both contain the interaction of seeds and items.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas

from workflow_scripts.analyses.item_sets import read_answers
from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import TrainedRun
from workflow_scripts.common.plug_ins import merge_options
from workflow_scripts.evaluation.protocol import find_worst_protocol
from workflow_scripts.evaluation.scores import make_scores
from workflow_scripts.evaluation.statistics import Effect, average_over_seeds_and_items, compare_with_constant

READOUT = "vocabulary"
Place = tuple[tuple[str, Any], ...]  # the selectors of a measure and their values


@dataclass(frozen=True)
class Answers:
    """Share `right` [m, n, I] (percent) of a variant over models, seeds and items; only `counted` items have one."""

    right: np.ndarray
    counted: np.ndarray

    def compute_seed_means(self) -> np.ndarray:
        """Return [n]: the mean over models of the mean over counted items; nan for a seed without items."""
        with np.errstate(invalid="ignore"):
            return ((self.right * self.counted).sum(-1) / self.counted.sum(-1)).mean(0)

    def compute_leave_one_out_means(self) -> np.ndarray:
        """Return [I]: the mean over seeds and models without an item; not finite if no other item is left."""
        kept = self.right * self.counted
        with np.errstate(divide="ignore", invalid="ignore"):
            means = (kept.sum(-1, keepdims=True) - kept) / (self.counted.sum(-1, keepdims=True) - self.counted)
        return means.mean((0, 1))


def analyse(runs: list[TrainedRun], options: dict[str, Any]) -> AnalysisResult:
    """Compare two variants for each task, measure and subset (a method, or a mean over methods).

    Metrics: `difference`, `variant` less `over`, with 95% intervals `seeds_low` to `seeds_high` and `both_low` to
    `both_high` (points; n: seeds), and `items` (n: items). Measures: accuracy on all items; on the model's right items,
    ConsistSyn by rate (mean over draws) and accuracy under CAP before block `layer` (mean over poolings). An answer is
    the argmax over the vocabulary.

    options: variant, over: the two variants; layer: number of a block; means: name -> methods to average for each seed.
    A seed counts if every method has both variants and an item. One seed has no interval, and one item no interval over
    both.
    """
    given = merge_options(options, variant="", over="", layer=1, means={})
    variants, found = (given["variant"], given["over"]), AnalysisResult()
    for task in sorted({run.task for run in runs}):
        mine = [run for run in runs if run.task == task]
        measured = {(run.method, run.variant, run.seed): read_measures(run, given["layer"]) for run in mine}
        protocol = find_worst_protocol(*(run.protocol for run in mine))
        methods = {method: [method] for method in sorted({method for method, _, _ in measured})}
        for name, members in (methods | given["means"]).items():
            wanted = [(method, variant) for method in members for variant in variants]
            seeds = sorted({seed for _, _, seed in measured if all((*key, seed) in measured for key in wanted)})
            if not seeds:
                found.notes.append(f"{task}, {name}: no seed has {' and '.join(variants)} of every method")
                continue
            for place in measured[*wanted[0], seeds[0]]:
                tables = [[[measured[m, v, seed][place] for seed in seeds] for m in members] for v in variants]
                columns = {"task": task, "subset": name, "split": "test", "readout": READOUT, "protocol": protocol}
                _compare(found, columns | dict(place), *align_items(tables))
    return found


def read_measures(run: TrainedRun, layer: int) -> dict[Place, pandas.DataFrame]:
    """Return measure -> table by item: `right`, the share of right answers in percent, and `counted`."""
    answers = read_answers(run)
    answers = answers[answers["readout"] == READOUT]
    before = answers.groupby("item")["correct_before"].first()
    plain = pandas.DataFrame({"right": 100.0 * before, "counted": True})
    found: dict[Place, pandas.DataFrame] = {(("intervention", None), ("item_set", "all")): plain}
    chosen = answers[(answers["intervention"] == "synonyms") | (answers["layer"] == layer).fillna(False)]
    for (intervention, rate), rows in chosen.groupby(["intervention", "rate"], dropna=False):
        where = {"rate": rate} if intervention == "synonyms" else {"layer": layer}
        place = (("intervention", intervention), *where.items(), ("item_set", "own_correct"))
        shares = 100.0 * rows.groupby("item")["correct"].mean()
        found[place] = pandas.DataFrame({"right": shares, "counted": before})
    return found


def align_items(tables: Sequence[Sequence[Sequence[pandas.DataFrame]]]) -> tuple["Answers", ...]:
    """Reindex `tables` [sides][m][n] by the items that any of them counts."""
    flat = [table for side in tables for seeds in side for table in seeds]
    items = sorted(set().union(*(table.index[table["counted"]] for table in flat)))
    sides = []
    for side in tables:
        found = [[table.reindex(items) for table in seeds] for seeds in side]
        right = np.array([[table["right"].fillna(0.0) for table in seeds] for seeds in found], dtype=float)
        counted = np.array([[table["counted"].eq(True) for table in seeds] for seeds in found], dtype=bool)
        sides.append(Answers(right, counted))
    return tuple(sides)


def compute_two_way_effect(left: Answers, right: Answers) -> Effect:
    """Estimate left - right, in points, with an error over both seeds and items."""
    if left.counted.all() and right.counted.all():
        return average_over_seeds_and_items((left.right - right.right).mean(0))
    by_seed = left.compute_seed_means() - right.compute_seed_means()
    n, mean, method = len(by_seed), float(by_seed.mean()), "Student's t over jackknives of seeds and of items"
    without = left.compute_leave_one_out_means() - right.compute_leave_one_out_means()
    items = len(without)
    if n < 2 or items < 2 or not np.isfinite(without).all():
        return Effect(mean, None, None, n, method)
    seeds_part = float(by_seed.var(ddof=1)) / n
    items_part = float(without.var()) * (items - 1)
    together = seeds_part + items_part
    below = seeds_part**2 / (n - 1) + items_part**2 / (items - 1)
    return Effect(mean, together**0.5, max(1.0, together**2 / below) if below > 0 else n - 1.0, n, method)


def _compare(found: AnalysisResult, columns: dict[str, Any], left: Answers, right: Answers) -> None:
    """Add the scores of a measure over the seeds in which both sides count an item of every model."""
    usable = np.isfinite(left.compute_seed_means()) & np.isfinite(right.compute_seed_means())
    what = ", ".join(str(value) for name, value in columns.items() if name not in ("split", "readout", "protocol"))
    if not usable.all():
        found.notes.append(f"{what}: {int((~usable).sum())} seeds without a right answer of a side are left out")
    if not usable.any():
        return
    left, right = (Answers(side.right[:, usable], side.counted[:, usable]) for side in (left, right))
    alone = compare_with_constant(left.compute_seed_means() - right.compute_seed_means(), 0.0)
    both = compute_two_way_effect(left, right)
    ends = {"difference": alone.value, "seeds_low": alone.low, "seeds_high": alone.high}
    ends |= {"both_low": both.low, "both_high": both.high}
    items = int((left.counted | right.counted).any((0, 1)).sum())
    values = {metric: (value, "points", alone.n) for metric, value in ends.items()}
    found.scores += make_scores(columns, values | {"items": (items, "items", items)})
    if both.low is None and alone.low is not None:
        found.notes.append(f"{what}: a seed has only one item; no interval over items")
