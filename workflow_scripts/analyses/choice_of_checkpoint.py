"""What the choice of a checkpoint gains by itself: validations of one run as draws, of which the best is taken."""

from collections.abc import Sequence
from math import comb
from typing import Any

import numpy as np
import pandas

from workflow_scripts.analyses.trained_runs import AnalysisResult, TrainedRun, make_score_row, stack_tables
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_json
from workflow_scripts.common.options import merge_options
from workflow_scripts.training.history import read_history


def analyse(runs: Sequence[TrainedRun], options: dict[str, Any]) -> AnalysisResult:
    """By run, of the validations called `name` in training.csv:

    validation_best, validation_last  of all of them
    validation_mean     of those that count as draws: later than `after` of the updates (a share), and no later than the
                        update at which a constant learning rate begins to fall
    gain_best_of_<k>    the expected maximum of k draws without replacement, less validation_mean, for each k of `draws`
                        and for all of them, which is `gain_best_of_all`
    Values are in the unit of the validation, taken for percent. gains.csv has the expected maximum for every k. A run
    with fewer than two draws has no mean and no gain; that is noted.
    """
    given = merge_options(options, name="valid_exact_match", after=0.2, draws=[])
    found, tables = AnalysisResult([]), []
    for run in runs:
        path = run.folder / "training.csv"
        values = [(step, value) for step, name, value in read_history(path) if name == given["name"]]
        if not values:
            raise UserError(f"{path} has no validation called {given['name']}; correct the analysis's option `name`")
        found.scores += [
            make_score_row(run, "validation_best", max(value for _, value in values), "percent", len(values)),
            make_score_row(run, "validation_last", values[-1][1], "percent", 1),
        ]
        training = read_json(run.folder / "run.json")["spec"]["training"]
        first, last = given["after"] * training["max_steps"], training["max_steps"] - training.get("decay_steps", 0)
        draws = np.array([value for step, value in values if first < step <= last])
        if len(draws) < 2:
            found.notes.append(f"{run}: {len(draws)} validations between updates {first:.0f} and {last}; no gain")
            continue
        best = np.array([compute_expected_maximum(draws, k) for k in range(1, len(draws) + 1)])
        found.scores.append(make_score_row(run, "validation_mean", draws.mean(), "percent", len(draws)))
        of_k = {f"gain_best_of_{k}": best[k - 1] for k in given["draws"] if k <= len(draws)}
        of_k["gain_best_of_all"] = best[-1]
        found.scores += [
            make_score_row(run, name, value - draws.mean(), "points", len(draws)) for name, value in of_k.items()
        ]
        of_run = {"k": np.arange(1, len(draws) + 1), "expected_maximum": best, "gain": best - draws.mean()}
        tables.append(pandas.DataFrame(run.columns | of_run))
    found.files["gains"] = stack_tables(tables, ["k", "expected_maximum", "gain"])
    return found


def compute_expected_maximum(values: np.ndarray, k: int) -> float:
    """Of k of the values [N], drawn without replacement, every set of k being as likely: exact, 1 <= k <= N."""
    # The i-th smallest, from 0, is the maximum of those sets whose other k - 1 members are among the i smaller ones.
    chances = np.array([comb(i, k - 1) / comb(len(values), k) for i in range(len(values))])
    return float(np.sort(values) @ chances)
