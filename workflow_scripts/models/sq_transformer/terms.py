"""What the objective of SQ-Transformer reads of a training step, besides the word logits."""

from dataclasses import dataclass

from torch import Tensor

from workflow_scripts.models.sq_transformer.quantisation import Quantised
from workflow_scripts.models.transformer.model import Seq2SeqOutput


@dataclass(frozen=True)
class ClusterPrediction:
    """The prediction of codes from their context.

    X is K, or K + 1 on a side with a mask code, whose score is -inf.

    prior [..., X]: logits of p(z | context). posterior [..., X]: scores of q(z | x) at the same
    positions. predicted [...]: False at positions that do not count. Here `...` is [S, B], all
    positions, or [B], the one position of each sentence that was masked.
    marginal [..., X]: scores of q(z | x) whose mean is q(Z), for H(Z). They are those of
    `posterior`, and with a causal predictor of the source also those of the first position.
    averaged [...]: False at positions that the mean leaves out.
    """

    prior: Tensor
    posterior: Tensor
    predicted: Tensor
    marginal: Tensor
    averaged: Tensor


@dataclass(frozen=True)
class SideTerms:
    """What the objective reads of one side, the source or the target.

    embedded [S, B, d]: the embeddings e that were quantised. quantised: their codes z.
    real [S, B]: False on padding.
    output [S, B, d]: the final states. nearest: their nearest codes.
    next_codes [S, B]: the code that an output must predict. next_real [S, B]: whether there is one.
    layers [layers, S, 2 B, d]: words and codes after each layer; None without SRL.
    prediction: None if the model has no predictors of clusters.
    """

    embedded: Tensor
    quantised: Quantised
    real: Tensor
    output: Tensor
    nearest: Quantised
    next_codes: Tensor
    next_real: Tensor
    layers: Tensor | None
    prediction: ClusterPrediction | None


@dataclass(frozen=True)
class TrainingTerms:
    """What the objective reads of both sides."""

    source: SideTerms
    target: SideTerms


@dataclass
class SQTransformerOutput(Seq2SeqOutput):
    """Word logits [B, T, V] and, in training, the terms."""

    terms: TrainingTerms | None = None
