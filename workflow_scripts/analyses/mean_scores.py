"""Means over the scores of several tasks, of one model, and its gain over another one: what a text names of a table."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import TrainedRun, make_score_row
from workflow_scripts.common.options import merge_options
from workflow_scripts.evaluation.protocol import find_worst_protocol
from workflow_scripts.evaluation.scores import read_scores

Scores = dict[int, float]  # by seed


def analyse(runs: Sequence[TrainedRun], options: dict[str, Any]) -> AnalysisResult:
    """Metric `mean` (percent) of each model, or with `over` its `gain` (points) over another one, in the column subset
    `over <the other>`, by seed, for each mean (in the column item_set), under the task of its first score.

    options:
        models: name -> method, variant, readout where there are several, and `by_task`: variants on other tasks.
        means: name -> the scores of which it is the mean, each a task, split, subset and metric.
        over: name of a model -> the models over which its gains are formed.
    A seed counts where it has all scores of a mean; a gain is of the same seed of both.
    """
    given = merge_options(options, models={}, means={}, over={})
    found = AnalysisResult()
    by_variant: dict[tuple[str, str, str], list[TrainedRun]] = {}
    for run in runs:
        by_variant.setdefault((run.task, run.method, run.variant), []).append(run)
    pairs = [(name, other) for name, others in given["over"].items() for other in others]
    for mean, wanted in given["means"].items():
        made = {name: average_by_seed(model, wanted, by_variant) for name, model in given["models"].items()}
        for name, other in pairs or [(name, "") for name in made]:
            values, shown = made[name]
            metric, subset, unit, protocol = "mean", "all", "percent", shown and shown.protocol
            if other:
                theirs, beside = made[other]
                values = {seed: value - theirs[seed] for seed, value in values.items() if seed in theirs}
                metric, subset, unit = "gain", f"over {other}", "points"
                protocol = find_worst_protocol(shown.protocol, beside.protocol) if values else ""
            if not values:
                found.notes.append(
                    f"{mean}: not all of its scores are there for {' and '.join(filter(None, (name, other)))}"
                )
            found.scores += [
                make_score_row(
                    replace(shown, seed=seed, protocol=protocol),
                    metric,
                    value,
                    unit,
                    len(wanted),
                    subset=subset,
                    item_set=mean,
                    readout=given["models"][name].get("readout"),
                )
                for seed, value in values.items()
            ]
    return found


def average_by_seed(
    model: dict[str, Any], wanted: list[dict[str, str]], runs: dict[tuple[str, str, str], list[TrainedRun]]
) -> tuple[Scores, TrainedRun | None]:
    """(the mean by seed of the wanted scores of a model, a run of its first task with the worst protocol of all)."""
    used, columns = [], []
    for cell in wanted:
        variant = model.get("by_task", {}).get(cell["task"], model["variant"])
        mine = runs.get((cell["task"], model["method"], variant), [])
        used.append(mine)
        columns.append(
            {run.seed: value for run in mine if (value := find_value(run, cell, model.get("readout"))) is not None}
        )
    seeds = sorted(set.intersection(*map(set, columns)))
    if not seeds:
        return {}, None
    protocol = find_worst_protocol(*(run.protocol for mine in used for run in mine))
    found = {seed: sum(column[seed] for column in columns) / len(columns) for seed in seeds}
    return found, replace(used[0][0], protocol=protocol)


def find_value(run: TrainedRun, cell: dict[str, str], readout: str) -> float | None:
    """The score of a run that a cell names by split, subset and metric; None where it is not defined."""
    selected = {**cell, "readout": readout}
    rows = read_scores(run.folder / "eval/scores.csv")
    return next((row["value"] for row in rows if all(row[name] == value for name, value in selected.items())), None)
