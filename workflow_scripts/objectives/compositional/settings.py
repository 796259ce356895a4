"""Settings of CAT's pre-training."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from workflow_scripts.common.validation import NonNegative
from workflow_scripts.tasks.settings import ObjectiveOfKind


class Settings(ObjectiveOfKind):
    """CAT's pre-training. The first seven settings are weights of terms.

    All weights are 1 in the paper and the official code; there `sparsity` has no gradient. The
    defaults are the paper's where its text is sufficient.
    """

    kind: ClassVar[str] = "masked_lm"

    mixed: NonNegative = 1.0  # semantic sufficiency of h_mix, h_cont and h_comp
    contextual: NonNegative = 1.0  # 2 if L_task is added, as the paper's sum literally says
    compositional: NonNegative = 1.0
    consistency: NonNegative = 1.0  # mean square over tokens and features
    nuance: NonNegative = 1.0
    decomposition: NonNegative = 1.0
    sparsity: NonNegative = 1.0  # mean over layers of the mean of |O| over tokens and codes
    beta: Annotated[float, Field(ge=0, lt=1)] = 0.1
    # exp(-NSP) + exp(-MLM) (Eqn 10 and official code), or exp(-(NSP + MLM)) (Eqn 7).
    nuance_task: Literal["two", "sum"] = "two"
