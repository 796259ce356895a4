"""BLEU from sacrebleu, over a split and each of its subsets."""

from pathlib import Path

import pyarrow as pa
from sacrebleu.metrics.bleu import BLEU

from workflow_scripts.evaluation.options.bleu import Options
from workflow_scripts.evaluation.scores import Score, find_subset_rows, make_scores


def score_outputs(
    outputs: list[str],
    references: list[str],
    table: pa.Table,
    data: Path,
    options: Options,
) -> list[Score]:
    """Return BLEU (0 to 100) for each metric of the options and each subset.

    `table` is the split; `data`, its folder, is not used.
    """
    subsets = find_subset_rows(table["subset"].to_numpy())
    scores = []
    for metric, settings in options.root.items():
        # `force` silences sacrebleu's warning about tokenised input, which is intended here.
        bleu = BLEU(tokenize=settings.tokenize, force=True)
        for subset, rows in subsets.items():
            subset_outputs = [outputs[row] for row in rows]
            subset_references = [references[row] for row in rows]
            score = bleu.corpus_score(subset_outputs, [subset_references]).score
            scores += make_scores({"subset": subset}, {metric: (score, "BLEU", len(rows))})
    return scores
