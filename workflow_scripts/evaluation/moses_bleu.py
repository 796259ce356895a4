"""BLEU of translations of the WMT by sacrebleu: of the tokens of Moses, and of text that is put together from them.

Options: language of the translations.

`bleu_tokenised` compares tokens as the training text has them, which flatters and is what papers on fairseq's recipes
mostly report; `bleu_detokenised` compares text with the reference as it was published, by sacrebleu's tokenizer 13a,
which anybody's numbers can be compared with. The second needs a split with that text (a column `target_text`).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from sacrebleu.metrics import BLEU
from sacremoses import MosesDetokenizer

from workflow_scripts.common.validation import Strict, checked

WHERE = "evaluation.measures of workflow_scripts.evaluation.moses_bleu"


class Options(Strict):
    """See the module's docstring."""

    language: Literal["en", "de", "fr"]


def measure(
    outputs: Sequence[str], references: Sequence[str], table: pa.Table, data: Path, given: dict[str, Any]
) -> list[dict[str, Any]]:
    """Return score rows, BLEU from 0 to 100. `references` are not used: they lack characters that training lacks."""
    language = checked(Options, given, WHERE).language
    tokens = table["target_words"].to_pylist()
    # `force`: the texts are tokenised on purpose.
    scores = {"bleu_tokenised": BLEU(tokenize="none", force=True).corpus_score(outputs, [tokens]).score}
    if "target_text" in table.column_names:
        detokenizer = MosesDetokenizer(lang=language)
        texts = [detokenizer.detokenize(output.split(" ")) for output in outputs]
        published = table["target_text"].to_pylist()
        scores["bleu_detokenised"] = BLEU(tokenize="13a").corpus_score(texts, [published]).score
    return [
        {"subset": "all", "metric": metric, "value": score, "unit": "BLEU", "n": len(outputs)}
        for metric, score in scores.items()
    ]
