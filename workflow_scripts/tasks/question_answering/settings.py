"""Settings of fine-tuning on questions about paragraphs."""

from typing import Self

from pydantic import model_validator

from workflow_scripts.common.validation import AtLeastOne, StrictModel
from workflow_scripts.tasks.settings import Evaluation, KindSettings
from workflow_scripts.training.settings import RecomputingTraining

SPECIAL_TOKENS = 4  # of RoBERTa; BERT has one less


class Settings(StrictModel):
    """Overlapping windows of a paragraph that may be longer than a sequence."""

    longest: AtLeastOne = 384  # tokens of a question and a window, with the special ones
    stride: AtLeastOne = 128  # tokens that a window shares with the one before
    longest_question: AtLeastOne = 64  # tokens; the rest is cut
    longest_answer: AtLeastOne = 30  # tokens of an answer that is given

    @model_validator(mode="after")
    def check_stride(self) -> Self:
        """Raise ValueError if windows would not advance."""
        if self.longest - self.longest_question - SPECIAL_TOKENS <= self.stride:
            raise ValueError(
                f"longest is {self.longest}; it must be greater than longest_question "
                f"{self.longest_question} + stride {self.stride} + {SPECIAL_TOKENS} special tokens"
            )
        return self


KIND = KindSettings(
    problem=Settings,
    training=RecomputingTraining,
    evaluation=Evaluation,
    validation_metrics=("f1", "exact_match"),
    metrics=("adversarial_exact_match", "adversarial_f1", "exact_match", "f1"),
)
