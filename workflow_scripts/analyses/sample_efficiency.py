"""Mean gain from one size of the training set to the next (CAT's table 7)."""

from collections.abc import Sequence

from workflow_scripts.analyses.options.sample_efficiency import Options
from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import TrainedRun, group_runs
from workflow_scripts.evaluation.scores import read_scores


def analyse(runs: Sequence[TrainedRun], options: Options) -> AnalysisResult:
    """Compute `mean_gain` (points) from the first to the last size of a training set.

    It is computed for each method, variant and seed with runs at both.

    The mean of the differences depends on the ends only: (last - first) / (sizes - 1). Rows have
    the last task.
    """
    result = AnalysisResult()
    for name, tasks in options.sizes.items():
        columns = {
            "split": options.split.get(name, "test"),
            "subset": "all",
            "metric": options.metric,
        }
        first_task = tasks[0]
        last_task = tasks[-1]
        steps = len(tasks) - 1
        runs_of_sizes = [run for run in runs if run.task in tasks]
        for _, members in group_runs(runs_of_sizes, "method", "variant", "seed"):
            run_of = {run.task: run for run in members}
            missing = [task for task in (first_task, last_task) if task not in run_of]
            if missing:
                some_run = next(iter(run_of.values()))
                result.notes.append(f"{some_run}: not run on {', '.join(missing)}")
                continue
            first = _read_by_readout(run_of[first_task], columns, options.without)
            last = _read_by_readout(run_of[last_task], columns, options.without)
            for readout in [name for name in first if name in last]:
                gain = (last[readout] - first[readout]) / steps
                values = {"mean_gain": (gain, "points", steps)}
                result.scores += run_of[last_task].make_scores(values, readout=readout)
    return result


def _read_by_readout(
    run: TrainedRun, columns: dict[str, str], without: list[str]
) -> dict[str | None, float]:
    """Read the scores of a run with these columns, except for the readouts `without`."""
    value_of = {}
    for score in read_scores(run.files.evaluation.scores):
        if score.has(columns) and score.readout not in without:
            value_of[score.readout] = score.value
    return value_of
