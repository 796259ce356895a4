"""Settings of fine-tuning on prompts. No torch here."""

from typing import Literal

from pydantic import Field

from workflow_scripts.tasks.settings import CrossEntropySettings, Evaluation, KindSettings
from workflow_scripts.training.settings import RecomputingTraining


class Settings(CrossEntropySettings):
    """Cross-entropy of the one token that answers a prompt."""


class PromptEvaluation(Evaluation):
    """Settings of scoring the answers to prompts."""

    match: Literal["token", "text"] = Field(
        "token",
        description="A prompt's answer must be this very token, or the same text but for case and "
        "spaces.",
    )


def get_match_rule(evaluation: Evaluation | None) -> str:
    """Return the rule by which an answer is right, the default one without an evaluation."""
    if isinstance(evaluation, PromptEvaluation):
        return evaluation.match
    return PromptEvaluation.model_fields["match"].default


KIND = KindSettings(
    problem=Settings,
    training=RecomputingTraining,
    evaluation=PromptEvaluation,
    validation_metrics=("exact_match",),
    metrics=("constrained", "exact_match"),
)
