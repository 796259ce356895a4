"""Compound translation error rate of a split with a column `compound`.

It uses the data's lexicon.json.
"""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from workflow_scripts.common.files import read_json
from workflow_scripts.common.result_folders import DataFolder
from workflow_scripts.evaluation.compounds import compute_rates_by_phrase, find_compound_errors
from workflow_scripts.evaluation.options.compound_measure import Options
from workflow_scripts.evaluation.scores import Score, make_scores


def score_outputs(
    outputs: Sequence[str],
    references: Sequence[str],
    table: pa.Table,
    data: Path,
    options: Options,
) -> list[Score]:
    """Return the scores `cter_instance` and `cter_aggregate` (percent).

    They are for all sentences and for each phrase type; none for a split without the column
    `compound`. data: the folder with lexicon.json. `references` are not used.
    """
    if "compound" not in table.column_names:
        return []
    compounds = table["compound"].to_pylist()
    errors = find_compound_errors(compounds, outputs, read_json(DataFolder(data).lexicon))
    rows = []
    for subset, rates in compute_rates_by_phrase(compounds, errors).items():
        values = {
            "cter_instance": (rates.instance, "percent", rates.sentences),
            "cter_aggregate": (rates.aggregate, "percent", rates.compounds),
        }
        rows += make_scores({"subset": subset}, values)
    return rows
