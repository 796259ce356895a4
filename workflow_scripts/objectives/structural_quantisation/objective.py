"""Objective of SQ-Transformer.

The loss has these parts: next word, predictive clustering (with H(Z)), commitment, next code,
output commitment, distance of the streams.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from workflow_scripts.models.sq_transformer.terms import SideTerms
from workflow_scripts.objectives.structural_quantisation.settings import Settings
from workflow_scripts.tasks.base import Loss, average_over
from workflow_scripts.tasks.batching import Batch
from workflow_scripts.tasks.seq2seq.word_loss import WordLoss, compute_word_cross_entropy

CAPTURABLE = True  # see tasks.base.TrainingSetup
MAXIMISED = ("entropy_source", "entropy_target")  # H(Z), subtracted from the loss


def compute_cluster_cross_entropy(posterior: Tensor, prior: Tensor, counted: Tensor) -> Tensor:
    """Return H(q, p) = mean_n sum_z -q(z | x_n) log p(z | context_n)   (Eqn 12), in nats.

    It has gradients to both. posterior [..., K]: scores of q, which may be -inf. prior [..., K]:
    logits of p. counted [...]: the positions n.
    """
    q = posterior.softmax(dim=-1)
    log_p = prior.float().log_softmax(dim=-1)
    return average_over(-(q * log_p).sum(dim=-1), counted)


def compute_cluster_entropy(marginal: Tensor, counted: Tensor) -> Tensor:
    """Return H(Z) = -sum_z q(z) log q(z) in nats, with q(z) = mean_n q(z | x_n)   (Eqn 12).

    marginal [..., K]: scores of q. counted [...]: the positions n.
    """
    q = torch.where(counted[..., None], marginal.softmax(dim=-1), 0.0)
    probability = q.flatten(0, -2).sum(dim=0) / counted.sum().clamp(min=1)
    return -(probability * (probability + 1e-30).log()).sum()


def compute_commitment(states: Tensor, vectors: Tensor, counted: Tensor) -> Tensor:
    """Return the mean of (sg[z] - e)^2 over counted [S, B] positions and features.

    states e, vectors z: [S, B, d].
    """
    return average_over((vectors.detach() - states).square().mean(dim=-1), counted)


def compute_next_code_cross_entropy(scores: Tensor, next_codes: Tensor, counted: Tensor) -> Tensor:
    """Return the mean of -log softmax_k(s_k(h_n))[z_{n+1}] over counted positions, in nats.

    See A.5 of the paper. counted [S, B]. scores [S, B, K]: similarities of the final states h_n.
    next_codes [S, B]: the hard code of the next token.
    """
    losses = cross_entropy(scores.flatten(0, 1), next_codes.flatten(), reduction="none")
    return average_over(losses, counted.flatten())


def compute_stream_distance(layers: Tensor, real: Tensor, stop_gradient: bool = True) -> Tensor:
    """Return sum_l mean (x_l - sg[z_l])^2   (section 3.3).

    The mean is over real [S, B] positions and features. layers [L, S, 2 B, d]: words x_l, then
    codes z_l. Without `stop_gradient` there is no sg.
    """
    words, codes = layers.chunk(2, dim=2)
    if stop_gradient:
        codes = codes.detach()
    squares = (words - codes).square().mean(dim=-1)
    return average_over(squares.sum(dim=0), real)


def compute_side_parts(terms: SideTerms, side: str, settings: Settings) -> dict[str, Tensor]:
    """Return the unweighted parts of one side ("source", "target") by their weights' names."""
    real = terms.real
    parts = {
        "commitment": compute_commitment(terms.embedded, terms.quantised.vectors, real),
        "next_code": compute_next_code_cross_entropy(
            terms.nearest.scores, terms.next_codes, terms.next_real
        ),
        "output_commitment": compute_commitment(terms.output, terms.nearest.vectors, real),
    }
    prediction = terms.prediction
    if prediction is not None:
        parts["cluster"] = compute_cluster_cross_entropy(
            prediction.posterior, prediction.prior, prediction.predicted
        )
        n_positions = real.size(0)  # of the longest sentence, with its end symbol
        if n_positions >= getattr(settings, f"entropy_min_length_{side}"):
            parts["entropy"] = compute_cluster_entropy(prediction.marginal, prediction.averaged)
    if terms.layers is not None:
        parts["distance"] = compute_stream_distance(
            terms.layers, real, settings.distance_stops_gradient
        )
    return {f"{name}_{side}": value for name, value in parts.items()}


def build(settings: Settings, word_loss: WordLoss) -> Loss:
    """Return the objective. `word_loss` is the loss of seq2seq tasks."""
    return QuantisationLoss(settings, word_loss.label_smoothing)


@dataclass(frozen=True)
class QuantisationLoss:
    """objective(model, batch) -> (loss, unweighted parts).

    The loss is the word cross-entropy plus the weighted parts; the entropies H(Z) are subtracted.
    With equal weights a, clusters and entropy are a (H(q, p) - H(Z)), the variational Brown
    objective (Eqn 4). In eval mode the loss is the word cross-entropy alone.
    """

    settings: Settings
    label_smoothing: float

    def __call__(self, model: nn.Module, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Return (loss, unweighted parts) of a batch."""
        output = model(batch.source, batch.target_in)
        loss = compute_word_cross_entropy(output.logits, batch.target_out, self.label_smoothing)
        parts = {"word": loss}
        if output.terms:  # none in eval mode
            of_sides = compute_side_parts(output.terms.source, "source", self.settings)
            of_sides |= compute_side_parts(output.terms.target, "target", self.settings)
            for name, value in of_sides.items():
                loss = loss + self._get_weight(name) * value
                parts[name] = value
        return loss, {name: value.detach() for name, value in parts.items()}

    def _get_weight(self, name: str) -> float:
        """Return the weight of a part in the loss."""
        weight = getattr(self.settings, name)
        if name in MAXIMISED:
            return -weight
        return weight
