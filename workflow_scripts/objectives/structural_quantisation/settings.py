"""Settings of SQ-Transformer's objective."""

from typing import Annotated, ClassVar

from pydantic import Field

from workflow_scripts.common.validation import NonNegative
from workflow_scripts.tasks.settings import ObjectiveOfKind


class Settings(ObjectiveOfKind):
    """Weights of the parts of the loss; that of the word cross-entropy is 1.

    Defaults are those of the official code for SCAN. The weight of a part that the model lacks (no
    predictors, no second stream) has no effect.
    """

    kind: ClassVar[str] = "seq2seq"

    cluster_source: NonNegative = 0.1  # cross-entropy of q(z | x) and p(z | context)
    cluster_target: NonNegative = 0.1
    entropy_source: NonNegative = 0.1  # entropy H(Z), maximised
    entropy_target: NonNegative = 0.1
    commitment_source: NonNegative = 0.1  # embedding to its code
    commitment_target: NonNegative = 0.1
    next_code_source: NonNegative = 0.5  # final output predicts the next code
    next_code_target: NonNegative = 0.5
    output_commitment_source: NonNegative = 0.1  # final output to its nearest code
    output_commitment_target: NonNegative = 0.1
    distance_source: NonNegative = 0.001  # words to codes after each layer (SRL)
    distance_target: NonNegative = 0.001
    distance_stops_gradient: bool = True  # whether it does not train the codes (not in the paper)
    # H(Z) of a side is used only in batches whose longest sequence on that side has at least this
    # number of positions, with the end symbol. 3 excludes batches of single words (official code:
    # for the source only, and only with the masked predictor; with the causal one 0).
    entropy_min_length_source: Annotated[int, Field(ge=0)] = 3
    entropy_min_length_target: Annotated[int, Field(ge=0)] = 0
