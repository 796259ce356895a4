"""Means over the scores of several tasks for each model, and gains over other models.

They are for numbers in a paper's text.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from workflow_scripts.analyses.options.mean_scores import AveragedScore, Options
from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import TrainedRun
from workflow_scripts.evaluation.protocol import find_worst_protocol
from workflow_scripts.evaluation.scores import Score, read_scores
from workflow_scripts.evaluation.seeds import list_common_seeds


def analyse(runs: Sequence[TrainedRun], options: Options) -> AnalysisResult:
    """Compute the `mean` (percent) of each model by seed, or its `gain` (points) over other models.

    The gain is computed with the option `over`. A model is a `series` of the runs.

    A mean needs all of its scores for the seed; a gain compares equal seeds. Rows have the mean's
    name as item_set, `over <other model>` as subset, and the task of the first score.
    """
    result = AnalysisResult()
    comparisons = []
    for name, others in options.over.items():
        comparisons += [(name, other) for other in others]
    models = list(dict.fromkeys(run.series for run in runs))
    for mean, cells in options.means.items():
        mean_of = {}
        for name in dict.fromkeys([*models, *chain(*comparisons)]):
            model_runs = [run for run in runs if run.series == name]
            mean_of[name] = average_by_seed(cells, model_runs)
        if comparisons:
            for name, other in comparisons:
                gain = compare_means(mean_of[name], mean_of[other])
                columns = {"item_set": mean, "subset": f"over {other}"}
                result.scores += make_seed_scores(gain, "gain", "points", len(cells), columns)
                if not gain.value_of:
                    result.notes.append(
                        f"{mean}: not all of its scores are there for {name} and {other}"
                    )
        else:
            for name, seed_means in mean_of.items():
                columns = {"item_set": mean, "subset": "all"}
                result.scores += make_seed_scores(
                    seed_means, "mean", "percent", len(cells), columns
                )
                if not seed_means.value_of:
                    result.notes.append(f"{mean}: not all of its scores are there for {name}")
    return result


@dataclass(frozen=True)
class SeedMeans:
    """Means by seed, or their differences.

    run: of the first task, with the worst protocol of all; None without means.
    """

    value_of: dict[int, float]
    run: TrainedRun | None


def average_by_seed(cells: Sequence[AveragedScore], runs: Sequence[TrainedRun]) -> SeedMeans:
    """Average the scores in `cells` of the runs of a model, for the seeds that have all of them."""
    used_runs: list[TrainedRun] = []
    columns = []
    for cell in cells:
        task_runs = [run for run in runs if run.task == cell.task]
        columns.append(read_cell(cell, task_runs))
        used_runs += task_runs
    seeds = list_common_seeds(columns)
    if not seeds:
        return SeedMeans({}, None)
    value_of = {seed: sum(column[seed] for column in columns) / len(columns) for seed in seeds}
    protocol = find_worst_protocol(*(run.protocol for run in used_runs))
    return SeedMeans(value_of, replace(used_runs[0], protocol=protocol))


def read_cell(cell: AveragedScore, runs: Sequence[TrainedRun]) -> dict[int, float]:
    """Read the first score of each seed with the columns of `cell` and the readout of its run."""
    value_of: dict[int, float] = {}
    for run in runs:
        columns = {**cell.model_dump(), "readout": run.readout}
        for score in read_scores(run.files.evaluation.scores):
            if score.has(columns):
                value_of.setdefault(run.seed, score.value)
    return value_of


def compare_means(left: SeedMeans, right: SeedMeans) -> SeedMeans:
    """Return left - right for the seeds of both."""
    value_of = {}
    for seed, value in left.value_of.items():
        if seed in right.value_of:
            value_of[seed] = value - right.value_of[seed]
    if not value_of:
        return SeedMeans({}, None)
    assert left.run and right.run, "both have means"
    protocol = find_worst_protocol(left.run.protocol, right.run.protocol)
    return SeedMeans(value_of, replace(left.run, protocol=protocol))


def make_seed_scores(
    means: SeedMeans, metric: str, unit: str, n: int, columns: dict[str, str]
) -> list[Score]:
    """Make the score of each seed."""
    scores = []
    if means.run is None:
        return scores
    for seed, value in means.value_of.items():
        run = replace(means.run, seed=seed)
        scores += run.make_scores({metric: (value, unit, n)}, readout=run.readout, **columns)
    return scores
