"""How much a score gains because the best of several checkpoints is chosen: validations of a run are draws."""

from collections.abc import Sequence
from math import comb
from typing import Any

import numpy as np
import pandas

from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import TrainedRun, stack_tables
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_json
from workflow_scripts.common.plug_ins import merge_options
from workflow_scripts.training.history import read_history


def analyse(runs: Sequence[TrainedRun], options: dict[str, Any]) -> AnalysisResult:
    """Score the validations of each run, and the gain from choosing the best of them.

    options:
        name: of the validation in training.csv; its values are in percent.
        after: a share of the updates. Validations after it, and before the learning rate begins to fall, are draws.
        draws: numbers k of draws.
    Scores: `validation_best` and `validation_last` of all validations; `validation_mean` of the draws;
    `gain_best_of_<k>` and `gain_best_of_all`, the expected maximum of k draws without replacement, or of all, less
    validation_mean. gains.csv has every k. A run with fewer than two draws gets a note, and no mean and gain.
    """
    given = merge_options(options, name="valid_exact_match", after=0.2, draws=[])
    found, tables = AnalysisResult(), []
    for run in runs:
        path = run.folder / "training.csv"
        values = [(step, value) for step, name, value in read_history(path) if name == given["name"]]
        if not values:
            raise UserError(f"{path} has no validation called {given['name']}; correct the analysis's option `name`")
        scores = {"validation_best": (max(value for _, value in values), "percent", len(values))}
        scores["validation_last"] = values[-1][1], "percent", 1
        found.scores += run.make_scores(scores)
        training = read_json(run.folder / "run.json")["spec"]["training"]
        first, last = given["after"] * training["max_steps"], training["max_steps"] - training.get("decay_steps", 0)
        draws = np.array([value for step, value in values if first < step <= last])
        if len(draws) < 2:
            found.notes.append(f"{run}: {len(draws)} validations between updates {first:.0f} and {last}; no gain")
            continue
        best = np.array([compute_expected_maximum(draws, k) for k in range(1, len(draws) + 1)])
        gain = best - draws.mean()
        scores = {"validation_mean": (draws.mean(), "percent", len(draws))}
        counts = {str(k): k for k in given["draws"] if k <= len(draws)} | {"all": len(draws)}
        scores |= {f"gain_best_of_{name}": (gain[k - 1], "points", len(draws)) for name, k in counts.items()}
        found.scores += run.make_scores(scores)
        table = {"k": np.arange(1, len(draws) + 1), "expected_maximum": best, "gain": gain}
        tables.append(pandas.DataFrame(run.columns | table))
    found.files["gains"] = stack_tables(tables, ["k", "expected_maximum", "gain"])
    return found


def compute_expected_maximum(values: np.ndarray, k: int) -> float:
    """Compute the exact expected maximum of k of the values [N], drawn without replacement; 1 <= k <= N."""
    # The i-th smallest value (from 0) is the maximum of the sets with k - 1 members among the i smaller values.
    chances = np.array([comb(i, k - 1) / comb(len(values), k) for i in range(len(values))])
    return float(np.sort(values) @ chances)
