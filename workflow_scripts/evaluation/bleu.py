"""BLEU from sacrebleu, over a split and each of its subsets.

Options: metric name -> {tokenize: a tokenizer of sacrebleu}. `zh` splits Chinese into characters and keeps other words
whole, `char` splits everything into characters, `none` splits only at spaces.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from sacrebleu.metrics import BLEU

from workflow_scripts.common.validation import StrictModel, parse_as
from workflow_scripts.evaluation.scores import find_subset_rows, make_scores

WHERE = "evaluation.measures of workflow_scripts.evaluation.bleu"


class Options(StrictModel):
    """See the module's docstring."""

    tokenize: Literal[tuple(BLEU.TOKENIZERS)]


def score_outputs(
    outputs: Sequence[str],
    references: Sequence[str],
    table: pa.Table,
    data: Path,
    given: dict[str, Any],
) -> list[dict[str, Any]]:
    """Return score rows: BLEU (0 to 100) for each metric of the options and each subset of the split `table`."""
    subsets, found = table["subset"].to_numpy(), []
    for metric, options in given.items():
        # `force` silences sacrebleu's warning about tokenised input, which is intended here.
        bleu = BLEU(tokenize=parse_as(Options, options, WHERE, metric).tokenize, force=True)
        for subset, rows in find_subset_rows(subsets).items():
            score = bleu.corpus_score(
                [outputs[i] for i in rows], [[references[i] for i in rows]]
            ).score
            found += make_scores({"subset": subset}, {metric: (score, "BLEU", len(rows))})
    return found
