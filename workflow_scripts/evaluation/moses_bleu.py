"""BLEU of WMT translations from sacrebleu, over Moses tokens and over detokenised text.

`bleu_tokenised` compares Moses tokens, as in the training text. Its values are too high, but most
papers that use fairseq's recipes report it. `bleu_detokenised` compares text with the published
reference by sacrebleu's tokenizer 13a, so it is comparable with other work. It needs a split with
that reference (column `target_text`).
"""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from sacrebleu.metrics.bleu import BLEU
from sacremoses import MosesDetokenizer

from workflow_scripts.evaluation.options.moses_bleu import Options
from workflow_scripts.evaluation.scores import Score, make_scores


def score_outputs(
    outputs: Sequence[str],
    references: Sequence[str],
    table: pa.Table,
    data: Path,
    options: Options,
) -> list[Score]:
    """Return the scores with BLEU from 0 to 100, of all outputs.

    outputs: Moses tokens joined by spaces. `table` is the split, with the references. `references`
    are not used, because they lack the characters that do not occur in the training data; nor is
    the folder `data`, which other measures need.
    """
    reference_tokens = table["target_words"].to_pylist()
    # `force` silences sacrebleu's warning about tokenised input, which is intended here.
    over_tokens = BLEU(tokenize="none", force=True)
    scores = {"bleu_tokenised": over_tokens.corpus_score(outputs, [reference_tokens]).score}
    if "target_text" in table.column_names:
        detokenizer = MosesDetokenizer(lang=options.language)
        texts = [detokenizer.detokenize(output.split(" ")) for output in outputs]
        reference_texts = table["target_text"].to_pylist()
        over_text = BLEU(tokenize="13a")
        scores["bleu_detokenised"] = over_text.corpus_score(texts, [reference_texts]).score
    values = {metric: (score, "BLEU", len(outputs)) for metric, score in scores.items()}
    return make_scores({}, values)
