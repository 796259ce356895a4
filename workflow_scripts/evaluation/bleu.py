"""BLEU from sacrebleu, over a split and each of its subsets.

Options: metric name -> {tokenize: a tokenizer of sacrebleu}. `zh` splits Chinese into characters
and keeps other words whole, `char` splits everything into characters, `none` splits only at spaces.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from sacrebleu.metrics import BLEU

from workflow_scripts.common.validation import StrictModel, parse_as
from workflow_scripts.evaluation.scores import find_subset_rows, make_scores

PLACE = "evaluation.measures of workflow_scripts.evaluation.bleu"


class Options(StrictModel):
    """See the module's docstring."""

    tokenize: Literal[tuple(BLEU.TOKENIZERS)]


def score_outputs(
    outputs: Sequence[str],
    references: Sequence[str],
    table: pa.Table,
    data: Path,
    measure_options: dict[str, Any],
) -> list[dict[str, Any]]:
    """Return score rows: BLEU (0 to 100) for each metric of the options and each subset.

    `table` is the split; `data`, its folder, is not used.
    """
    subsets = find_subset_rows(table["subset"].to_numpy())
    scores = []
    for metric, options in measure_options.items():
        tokenizer = parse_as(Options, options, PLACE, metric).tokenize
        # `force` silences sacrebleu's warning about tokenised input, which is intended here.
        bleu = BLEU(tokenize=tokenizer, force=True)
        for subset, rows in subsets.items():
            subset_outputs = [outputs[row] for row in rows]
            subset_references = [references[row] for row in rows]
            score = bleu.corpus_score(subset_outputs, [subset_references]).score
            scores += make_scores({"subset": subset}, {metric: (score, "BLEU", len(rows))})
    return scores
