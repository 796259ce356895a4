"""Mean gain from one size of the training set to the next (CAT's table 7)."""

from collections.abc import Sequence
from typing import Any

from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import TrainedRun, group_runs
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.plug_ins import merge_options
from workflow_scripts.evaluation.scores import read_scores


def analyse(runs: Sequence[TrainedRun], options: dict[str, Any]) -> AnalysisResult:
    """Compute `mean_gain` (points) for each method, variant and seed with runs at the first and the last size.

    options:
        sizes: name -> the tasks of one data set, from the smallest training set to the largest.
        split: of each name of `sizes`; the default is test.
        metric: of the scores; without: readouts to leave out.
    The mean of the differences depends on the ends only: (last - first) / (sizes - 1). Rows have the last task.
    """
    given = merge_options(options, sizes={}, split={}, metric="accuracy", without=["constant"])
    found = AnalysisResult()
    for name, tasks in given["sizes"].items():
        if len(tasks) < 2:
            raise UserError(
                f"displays.yaml: option sizes.{name} has {len(tasks)} tasks; a gain needs two"
            )
        wanted = {
            "split": given["split"].get(name, "test"),
            "subset": "all",
            "metric": given["metric"],
        }
        chosen = [run for run in runs if run.task in tasks]
        for _, members in group_runs(chosen, "method", "variant", "seed"):
            by_task = {run.task: run for run in members}
            ends = (tasks[0], tasks[-1])
            if missing := [task for task in ends if task not in by_task]:
                found.notes.append(
                    f"{next(iter(by_task.values()))}: not run on {', '.join(missing)}"
                )
                continue
            start, end = (
                _read_by_readout(by_task[task], wanted, given["without"]) for task in ends
            )
            for readout in start.keys() & end.keys():
                gain = (end[readout] - start[readout]) / (len(tasks) - 1)
                values = {"mean_gain": (gain, "points", len(tasks) - 1)}
                found.scores += by_task[ends[1]].make_scores(values, readout=readout)
    return found


def _read_by_readout(
    run: TrainedRun, wanted: dict[str, str], without: list[str]
) -> dict[str | None, float]:
    rows = [
        row for row in read_scores(run.folder / "eval/scores.csv") if wanted.items() <= row.items()
    ]
    return {row["readout"]: row["value"] for row in rows if row["readout"] not in without}
