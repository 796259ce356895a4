"""Parts of the spread of ConsistSyn: how much is due to the training seed, and how much to the draw of synonyms.

One-way analysis of variance with random effects: training seed s and draw d give mu + a_s + e_sd. The standard
deviations of a (between trained models) and of e (between draws on one model) are in points of percent.
"""

import math
from itertools import groupby
from operator import attrgetter
from typing import Any

import pandas

from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import TrainedRun
from workflow_scripts.common.plug_ins import merge_options
from workflow_scripts.evaluation.scores import read_scores
from workflow_scripts.interventions.variation import split_variance


def analyse(runs: list[TrainedRun], options: dict[str, Any]) -> AnalysisResult:
    """Compute `sd_training_seeds` and `sd_draws` (points) for each task, method and variant (column subset) and rate.

    n is the number of training seeds, or of draws of each seed. A score needs at least two.
    """
    merge_options(options)
    found = AnalysisResult()
    by_variant = attrgetter("task", "method", "variant")
    for (task, method, variant), group in groupby(sorted(runs, key=by_variant), key=by_variant):
        members = list(group)
        paths = [run.folder / "interventions/scores.csv" for run in members]
        rows = pandas.DataFrame([row for path in paths for row in read_scores(path)])
        for rate, table in rows[rows["metric"] == "consistency"].groupby("rate", sort=False):
            # Only the seeds with a score for every draw.
            values = table.pivot(index="seed", columns="intervention_seed", values="value").dropna().to_numpy()
            between, within = split_variance(values)
            columns = {"task": task, "subset": f"{method} {variant}", "rate": rate, "unit": "points"}
            columns["protocol"] = members[0].protocol
            for metric, part, n in zip(("sd_training_seeds", "sd_draws"), (between, within), values.shape, strict=True):
                if part is not None:
                    found.scores.append(columns | {"metric": metric, "value": math.sqrt(part), "n": n})
    return found
