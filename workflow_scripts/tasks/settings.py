"""Settings of evaluation that all kinds of tasks share, and what a kind says of its settings."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field

from workflow_scripts.common.validation import SplitName, StrictModel, require_unique
from workflow_scripts.training.settings import Training


class CrossEntropySettings(StrictModel):
    """Settings of kinds of tasks whose loss is a cross-entropy of words or tokens."""

    label_smoothing: float = Field(
        0.0, ge=0, lt=1, description="Share of the probability spread over the vocabulary."
    )


class ObjectiveOfKind(StrictModel):
    """Base class of the settings of an objective for one kind of task.

    It reads the loss of that `kind`, and cannot wrap any other. An objective that wraps any loss
    derives its settings from StrictModel.
    """

    kind: ClassVar[str]


class Evaluation(StrictModel):
    """Settings of scoring a run that all kinds of tasks read.

    A kind that reads more has a subclass of it.
    """

    splits: Annotated[list[SplitName], AfterValidator(require_unique)] = Field(min_length=1)
    batch_tokens: int = Field(gt=0)

    def get_measures(self) -> dict[str, dict[str, Any]]:
        """Return the modules that score outputs, with the options of each.

        They are in workflow_scripts/evaluation.
        """
        return {}


@dataclass(frozen=True)
class KindSettings:
    """What the configuration knows about a kind of task, without torch.

    problem, training, evaluation: classes of these sections of a run's settings, with the keys that
    the kind reads. validation_metrics: values that may choose the best weights; greater is better.
    metrics: of its scores, in the order of their names.
    """

    problem: type[StrictModel]
    training: type[Training]
    evaluation: type[Evaluation]
    validation_metrics: tuple[str, ...]
    metrics: tuple[str, ...]
