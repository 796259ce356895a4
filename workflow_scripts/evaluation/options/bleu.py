"""Options of the measure bleu."""

from typing import Literal

from pydantic import ConfigDict, RootModel

from workflow_scripts.common.validation import StrictModel
from workflow_scripts.evaluation.measures import MeasureOptions

# Those of sacrebleu, whose import is slow.
Tokenizer = Literal[
    "none",
    "zh",
    "13a",
    "intl",
    "char",
    "ja-mecab",
    "ko-mecab",
    "spm",
    "flores101",
    "flores200",
    "spBLEU-1K",
]


class BleuMetric(StrictModel):
    """One way to compute BLEU."""

    # `zh` splits Chinese into characters and keeps other words whole, `char` splits everything
    # into characters, `none` splits only at spaces.
    tokenize: Tokenizer


class Options(MeasureOptions, RootModel[dict[str, BleuMetric]]):
    """The metrics by their names, which are keys of your choice, each a BleuMetric."""

    model_config = ConfigDict(strict=True, frozen=True)

    def list_metrics(self) -> list[str]:
        """Return the names of the metrics."""
        return list(self.root)
