"""Settings of fine-tuning on sentences and on spans, in a module of their own. No torch here."""

from dataclasses import dataclass
from typing import Literal

from workflow_scripts.models.settings import check_at_least_one


@dataclass
class SentenceSettings:
    """What an encoder's state of [CLS] is made into: by a head, a class or a score; or the cosine of two sentences."""

    prediction: Literal["head", "cosine"] = "head"  # cosine: each sentence is read alone
    head_layers: Literal[1, 2] = 1  # 2: with a tanh between them
    head_width: int = 768  # of the first of two layers
    longest: int = 128  # tokens of a sentence or a pair, with the special ones

    def __post_init__(self) -> None:
        check_at_least_one(self, "head_width")
        if self.longest < 5:
            raise ValueError(f"longest is {self.longest}; a pair has at least 5 tokens")


@dataclass
class SpanSettings:
    """How questions are asked of a paragraph that may be longer than a sequence: in windows that overlap."""

    longest: int = 384  # tokens of a question and a window, with the special ones
    stride: int = 128  # tokens that a window shares with the one before
    longest_question: int = 64  # tokens; the rest is cut
    longest_answer: int = 30  # tokens of an answer that is given

    def __post_init__(self) -> None:
        check_at_least_one(self, "longest", "stride", "longest_question", "longest_answer")
        if self.longest - self.longest_question - 3 <= self.stride:
            raise ValueError(
                f"longest {self.longest} leaves a window no more than its stride {self.stride} beside "
                f"longest_question {self.longest_question} and three special tokens"
            )


# Where the settings of an objective's module stand.
SETTINGS = {
    "workflow_scripts.objectives.sentence_loss": SentenceSettings,
    "workflow_scripts.objectives.span_loss": SpanSettings,
}
