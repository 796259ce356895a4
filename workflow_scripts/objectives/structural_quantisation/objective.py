"""Objective of SQ-Transformer: next word, predictive clustering, commitment, next code, distance of the streams."""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from workflow_scripts.objectives.structural_quantisation.settings import Settings
from workflow_scripts.tasks.base import Loss, average_over
from workflow_scripts.tasks.batching import Batch
from workflow_scripts.tasks.seq2seq.problem import WordLoss, compute_word_cross_entropy

CAPTURABLE = True  # see tasks.base.Problem


def compute_cluster_cross_entropy(posterior: Tensor, prior: Tensor, counted: Tensor) -> Tensor:
    """Return H(q, p) = mean_n sum_z -q(z | x_n) log p(z | context_n)   (Eqn 12), in nats, with gradients to both.

    posterior [..., K]: scores of q, which may be -inf. prior [..., K]: logits of p. counted [...]: the positions n.
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
    """Return the mean of (sg[z] - e)^2 over counted [S, B] positions and features; states e, vectors z [S, B, d]."""
    return average_over((vectors.detach() - states).square().mean(dim=-1), counted)


def compute_next_code_cross_entropy(scores: Tensor, next_codes: Tensor, counted: Tensor) -> Tensor:
    """Return the mean of -log softmax_k(s_k(h_n))[z_{n+1}] over counted [S, B] positions, in nats (paper, A.5).

    scores [S, B, K]: similarities of the final states h_n. next_codes [S, B]: the hard code of the next token.
    """
    losses = cross_entropy(scores.flatten(0, 1), next_codes.flatten(), reduction="none")
    return average_over(losses, counted.flatten())


def compute_stream_distance(layers: Tensor, real: Tensor, stop_gradient: bool = True) -> Tensor:
    """Return sum_l mean (x_l - sg[z_l])^2, the mean over real [S, B] positions and features (section 3.3).

    layers [L, S, 2 B, d]: words x_l, then codes z_l. Without `stop_gradient` there is no sg.
    """
    words, codes = layers.chunk(2, dim=2)
    squares = (words - (codes.detach() if stop_gradient else codes)).square().mean(dim=-1)
    return average_over(squares.sum(dim=0), real)


def compute_side_parts(
    terms: dict[str, Tensor], side: str, settings: Settings
) -> dict[str, Tensor]:
    """Return the unweighted parts of one side ("source", "target") by their weights' names; terms: SQTransformer's."""

    def term(name: str) -> Tensor:
        return terms[f"{side}_{name}"]

    counted, next_counted = term("real"), term("next_real")
    parts = {
        "commitment": compute_commitment(term("embedded"), term("vectors"), counted),
        "next_code": compute_next_code_cross_entropy(
            term("output_scores"), term("next_codes"), next_counted
        ),
        "output_commitment": compute_commitment(term("output"), term("output_vectors"), counted),
    }
    if f"{side}_prior" in terms:
        parts["cluster"] = compute_cluster_cross_entropy(
            term("posterior"), term("prior"), term("predicted")
        )
        if len(counted) >= getattr(settings, f"entropy_min_length_{side}"):
            parts["entropy"] = compute_cluster_entropy(term("marginal"), term("averaged"))
    if f"{side}_layers" in terms:
        parts["distance"] = compute_stream_distance(
            term("layers"), term("real"), settings.distance_stops_gradient
        )
    return {f"{name}_{side}": value for name, value in parts.items()}


def build(weights: Settings, word_loss: WordLoss) -> Loss:
    """Return objective(model, batch) -> (loss, unweighted parts). `word_loss` is the loss of seq2seq tasks.

    The loss is the word cross-entropy plus the weighted parts; the entropies H(Z) are subtracted. With equal weights a,
    clusters and entropy are a (H(q, p) - H(Z)), the variational Brown objective (Eqn 4). In eval mode the loss is the
    word cross-entropy alone.
    """

    def objective(model: nn.Module, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        output = model(batch.source, batch.target_in)
        parts = {
            "word": compute_word_cross_entropy(
                output.logits, batch.target_out, word_loss.label_smoothing
            )
        }
        loss = parts["word"]
        for side in ("source", "target") if output.terms else ():
            for name, value in compute_side_parts(output.terms, side, weights).items():
                loss = (
                    loss
                    + (-1 if name.startswith("entropy") else 1) * getattr(weights, name) * value
                )
                parts[name] = value
        return loss, {name: value.detach() for name, value in parts.items()}

    return objective
