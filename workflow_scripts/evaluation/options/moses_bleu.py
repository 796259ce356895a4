"""Options of the measure moses_bleu."""

from typing import Literal

from workflow_scripts.common.validation import StrictModel
from workflow_scripts.evaluation.measures import MeasureOptions


class Options(StrictModel, MeasureOptions):
    """What the translations are."""

    language: Literal["en", "de", "fr"]  # of the translations

    def list_metrics(self) -> list[str]:
        """Return the names of the metrics."""
        return ["bleu_tokenised", "bleu_detokenised"]
