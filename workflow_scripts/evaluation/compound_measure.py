"""Compound translation error rate of a split with a column `compound`. No options.

It uses the data's lexicon.json.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from workflow_scripts.common.files import read_json
from workflow_scripts.common.validation import StrictModel, parse_as
from workflow_scripts.evaluation.compounds import compute_rates_by_phrase, find_compound_errors
from workflow_scripts.evaluation.scores import make_scores

METRICS = ("cter_instance", "cter_aggregate")
PLACE = "evaluation.measures of workflow_scripts.evaluation.compound_measure"


def score_outputs(
    outputs: Sequence[str],
    references: Sequence[str],
    table: pa.Table,
    data: Path,
    measure_options: dict[str, Any],
) -> list[dict[str, Any]]:
    """Return score rows `cter_instance` and `cter_aggregate` (percent).

    They are for all sentences and for each phrase type; none for a split without the column
    `compound`. data: the folder with lexicon.json. `references` are not used.
    """
    parse_as(StrictModel, measure_options, PLACE)  # no options
    if "compound" not in table.column_names:
        return []
    compounds = table["compound"].to_pylist()
    errors = find_compound_errors(compounds, outputs, read_json(data / "lexicon.json"))
    rows = []
    for subset, rates in compute_rates_by_phrase(compounds, errors).items():
        values = {
            "cter_instance": (rates.instance, "percent", rates.sentences),
            "cter_aggregate": (rates.aggregate, "percent", rates.compounds),
        }
        rows += make_scores({"subset": subset}, values)
    return rows
