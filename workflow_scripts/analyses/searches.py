"""The searches of learning rate and batch size: all pairs that were tried, and the chosen ones."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas

from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import TrainedRun
from workflow_scripts.common.files import read_json
from workflow_scripts.common.plug_ins import merge_options
from workflow_scripts.models.importing import read_settings


def analyse(runs: Sequence[TrainedRun], options: dict[str, Any]) -> AnalysisResult:
    """Report the search of each variant that has one, under the seed of the search.

    Scores: the chosen `learning_rate` (10^-5) and `batch_sentences` (sentences); `best` (percent), the validation of
    that pair; `range` (points), the best less the worst of all pairs. n counts the pairs. pairs.csv has all of them.
    """
    merge_options(options)
    found, tables = AnalysisResult(), []
    for run in {(run.task, run.method, run.variant): run for run in reversed(runs)}.values():
        if read_json(run.folder / "run.json")["chosen"] is None:
            found.notes.append(f"{run.task}/{run.method}/{run.variant}: trained without a search")
            continue
        # results/<scale>/data/<task> and results/<scale>/search/<task>/<method>/<variant>
        folder = run.data.parents[1] / "search" / run.task / run.method / run.variant
        search, tried = read_json(folder / "chosen.json"), pandas.read_csv(folder / "search.csv")
        of_search = replace(run, seed=search["spec"]["seed"], protocol=search["spec"]["protocol"])
        values = {
            "learning_rate": (1e5 * search["chosen"]["learning_rate"], "10^-5", len(tried)),
            "batch_sentences": (search["chosen"]["batch_sentences"], "sentences", len(tried)),
            "best": (search["best"]["value"], "percent", len(tried)),
            "range": (tried["value"].max() - tried["value"].min(), "points", len(tried)),
        }
        found.scores += of_search.make_scores(values, readout=read_settings(search["spec"]["model"]).readout)
        tables.append(pandas.DataFrame({**of_search.columns, **tried}))
    if tables:
        found.files["pairs"] = pandas.concat(tables, ignore_index=True)
    return found
