"""Means over the scores of several tasks for each model, and gains over other models, for numbers in a paper's text."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import TrainedRun
from workflow_scripts.common.plug_ins import merge_options
from workflow_scripts.evaluation.protocol import find_worst_protocol
from workflow_scripts.evaluation.scores import read_scores


def analyse(runs: Sequence[TrainedRun], options: dict[str, Any]) -> AnalysisResult:
    """Compute the `mean` (percent) of each model by seed, or with `over` its `gain` (points) over other models.

    A model is a `series` of the runs.

    options:
        means: name -> scores to average, each a task, split, subset and metric.
        over: name of a model -> other models.
    A mean needs all of its scores for the seed; a gain compares equal seeds. Rows have the mean's name as item_set,
    `over <other model>` as subset, and the task of the first score.
    """
    given = merge_options(options, means={}, over={})
    found = AnalysisResult()
    pairs = [(name, other) for name, others in given["over"].items() for other in others]
    models = dict.fromkeys([*(run.series for run in runs), *chain(*pairs)])
    for mean, cells in given["means"].items():
        by_model = {
            name: average_by_seed(cells, [run for run in runs if run.series == name])
            for name in models
        }
        for name, *others in pairs or [(model,) for model in models]:
            values, run = by_model[name]
            metric, subset, unit = "mean", "all", "percent"
            for other in others:
                theirs, other_run = by_model[other]
                values = {
                    seed: value - theirs[seed] for seed, value in values.items() if seed in theirs
                }
                metric, subset, unit = "gain", f"over {other}", "points"
                if values:
                    run = replace(
                        run, protocol=find_worst_protocol(run.protocol, other_run.protocol)
                    )
            if not values:
                found.notes.append(
                    f"{mean}: not all of its scores are there for {' and '.join([name, *others])}"
                )
            where = {"subset": subset, "item_set": mean, "readout": run and run.readout}
            for seed, value in values.items():
                found.scores += replace(run, seed=seed).make_scores(
                    {metric: (value, unit, len(cells))}, **where
                )
    return found


def average_by_seed(
    cells: list[dict[str, str]], runs: Sequence[TrainedRun]
) -> tuple[dict[int, float], TrainedRun | None]:
    """Return (seed -> mean of the scores in `cells`, a run of the first task with the worst protocol of all)."""
    used, columns = [], []
    for cell in cells:
        chosen = [run for run in runs if run.task == cell["task"]]
        by_seed: dict[int, float] = {}
        for run in chosen:
            for row in read_scores(run.folder / "eval/scores.csv"):
                if all(
                    row[name] == value for name, value in {**cell, "readout": run.readout}.items()
                ):
                    by_seed.setdefault(run.seed, row["value"])
        columns.append(by_seed)
        used += chosen
    seeds = sorted(set.intersection(*map(set, columns)))
    if not seeds:
        return {}, None
    means = {seed: sum(column[seed] for column in columns) / len(columns) for seed in seeds}
    return means, replace(used[0], protocol=find_worst_protocol(*(run.protocol for run in used)))
