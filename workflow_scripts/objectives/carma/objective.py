"""CARMA: make the hidden states of a word's tokens similar, and those of consecutive blocks.

L = (1 - lambda) L_task + lambda (gamma L_MI + eta L_stability)   (Eqns 7, 8). All similarities of L_MI are entries of
the Gram matrix H H^T of a sentence, so the number of pairs hardly changes the cost.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from workflow_scripts.common.errors import UserError
from workflow_scripts.objectives.carma.settings import Settings
from workflow_scripts.objectives.hidden_states import find_blocks, record_outputs
from workflow_scripts.tasks.base import Loss

EPSILON = 1e-8
CAPTURABLE = False  # the number of terms depends on the words of a batch: see tasks.base.Problem


@dataclass(frozen=True)
class Terms:
    """T terms of the MI loss: token anchor [T] of sentence row [T], and the tokens with which it is compared.

    positives [T, S] and allowed [T, S] are True at the positives and at the possible negatives.
    """

    row: Tensor
    anchor: Tensor
    positives: Tensor
    allowed: Tensor


def place_bos(words: Tensor, real: Tensor, joined: bool) -> tuple[Tensor, Tensor]:
    """Make BOS, a real first token without a word, part of word 1 if `joined`, else exclude it from all means.

    words [B, S]: index of a token's word in its sentence, or -1. real [B, S]: False on padding. Returns (words,
    counted), both [B, S].
    """
    bos = torch.zeros_like(real)
    bos[:, 0] = words[:, 0].lt(0) & real[:, 0]
    if joined:
        return torch.where(bos, words.roll(-1, dims=1), words), real
    return words, real & ~bos


def find_terms(words: Tensor, counted: Tensor, spans: str, positives: str) -> Terms:
    """Return the terms of a batch: words [B, S] (-1: no word), counted [B, S] (positions that may be compared).

    positives "pairwise": each pair i < j in a word is a term with anchor i; "logsum": each token of a word with several
    tokens is an anchor, and the others are its positives (Eqn 16). spans "own": words of the sentence itself; "batch":
    the positions of the words of all sentences are words in each sentence (official code).
    """
    same = words[:, :, None].eq(words[:, None]) & words.ge(0)[:, :, None]
    pairs = same.triu(diagonal=1)
    places = torch.arange(words.size(1), device=words.device)
    # The size of nonzero's result depends on the data, so the program must wait for the GPU here (and only here).
    if positives == "pairwise":
        owner, anchor, other = pairs.nonzero(as_tuple=True)
        chosen = places.eq(other[:, None])
    else:
        owner, anchor = (pairs | pairs.mT).any(dim=2).nonzero(as_tuple=True)
        chosen = same[owner, anchor] & places.ne(anchor[:, None])
    row, word = owner, same[owner, anchor]
    if spans == "batch":
        reached = (chosen.float() @ counted.float().t()).gt(0) & counted.t()[anchor]  # [T, B]
        term, row = reached.nonzero(as_tuple=True)
        anchor, chosen, word = anchor[term], chosen[term] & counted[row], word[term]
    return Terms(row, anchor, chosen, counted[row] & ~word)


def sample_negatives(allowed: Tensor, count: int) -> Tensor:
    """Sample `count` allowed positions per row uniformly with replacement: allowed [T, S] -> counts [T, S] float.

    A row without an allowed position is zero. The samples come from torch's global generator of the device.
    """
    ranks = allowed.cumsum(dim=1)
    wanted = (torch.rand(len(allowed), count, device=allowed.device) * ranks[:, -1:]).long() + 1
    places = torch.searchsorted(ranks, wanted).clamp_(max=allowed.size(1) - 1)
    drawn = torch.zeros(allowed.shape, device=allowed.device)
    return drawn.scatter_add_(1, places, torch.ones_like(places, dtype=drawn.dtype)) * allowed


def compute_similarities(states: list[Tensor], similarity: str) -> Tensor:
    """Return dot products or cosines of all token pairs of a sentence: L states [B, S, d] -> [L, B, S, S]."""
    half = torch.stack([torch.bmm(state, state.detach().mT) for state in states])
    # The value is H H^T, but its gradient (G + G^T) H needs one product of this size instead of two.
    gram = half + half.mT - half.detach()
    if similarity == "dot":
        return gram
    scale = gram.diagonal(dim1=2, dim2=3).clamp(min=EPSILON**2).rsqrt()
    return gram * scale[..., :, None] * scale[..., None, :]


def compute_mutual_information(
    similarity: Tensor, terms: Terms, negatives: Tensor, temperature: float
) -> tuple[Tensor, Tensor]:
    """Return (L_MI in nats, number of terms) for similarity c [L, B, S, S] and counts of the negatives [T, S].

    L_MI = mean over layers and terms of -log(P / (P + N)), where P is the sum of exp(c / tau) over positives, and N the
    sum over negatives   (Eqn 16). Terms without negatives are ignored. Without terms L_MI is 0, with a graph.
    """
    scores = similarity[:, terms.row, terms.anchor] / temperature  # [L, T, S]
    usable = negatives.any(dim=1)
    # A term without negatives gets all positions here and weight 0 below, so that its gradient is not 0 times infinity.
    negatives = torch.where(usable[:, None], negatives, 1.0)
    near = (scores + terms.positives.to(scores.dtype).log()).logsumexp(dim=2)
    far = (scores + negatives.log()).logsumexp(dim=2)
    # log(1 + N / P), exact also where N / P is tiny
    losses = nn.functional.softplus(far - near) * usable
    count = usable.sum()
    return losses.sum(dim=1).mean() / count.clamp(min=1), count


def compute_stability(states: list[Tensor], counted: Tensor) -> Tensor:
    """Return sum_k E|h^{k+1} - h^k|^2 / (E|h^k|^2 + E|h^{k+1}|^2 + 1e-8)   (Eqn 6).

    h^k [B, S, d] are the states of consecutive blocks. The means E are over features and counted [B, S] positions.
    """
    share = counted / counted.sum().clamp(min=1)

    def mean_square(values: Tensor) -> Tensor:
        return (values.square().mean(dim=2) * share).sum()

    sizes = torch.stack([mean_square(state) for state in states])
    changes = torch.stack([mean_square(after - before) for before, after in pairwise(states)])
    return (changes / (sizes[:-1] + sizes[1:] + EPSILON)).sum()


def compute_regularisers(
    states: dict[int, Tensor], words: Tensor | None, real: Tensor, s: Settings, count: int
) -> dict[str, Tensor]:
    """Return the unweighted losses `mi` and `stability`, without those of weight 0.

    `mi` comes with `pairs`, its number of terms, and `without_pairs`, 1 if there are none. states: block -> [B, S, d];
    words [B, S], or None if each token is a word; real [B, S].
    """
    if words is None:
        words, counted = torch.full_like(real, -1, dtype=torch.long), real
    else:
        words, counted = place_bos(words, real, s.bos)
    if s.padding:
        counted = counted | ~real
    parts = {}
    if s.mi:
        terms = find_terms(words, counted, s.spans, s.positives)
        negatives = (
            sample_negatives(terms.allowed, s.negatives) if s.negatives else terms.allowed.float()
        )
        used = compute_similarities([states[k] for k in s.list_mi_blocks(count)], s.similarity)
        parts["mi"], pairs = compute_mutual_information(used, terms, negatives, s.temperature)
        parts |= {"pairs": pairs.float(), "without_pairs": pairs.eq(0).float()}
    if s.stability:
        parts["stability"] = compute_stability(
            [states[k] for k in s.list_stability_blocks(count)], counted
        )
    return parts


def build(s: Settings, task: Loss) -> Loss:
    """Return objective(model, batch) -> (loss, parts of `task` and `compute_regularisers`). `task`: the task's loss.

    A batch has words and real [B, S], or source [B, S] and optionally words. In eval mode and with weight 0, the
    objective is the task's loss alone.
    """
    if s.weight == 0:
        return task

    def objective(model: nn.Module, batch: Any) -> tuple[Tensor, dict[str, Tensor]]:
        if not model.training:
            return task(model, batch)
        blocks = find_blocks(model)
        count = len(blocks)
        try:
            s.check_blocks(count)
        except ValueError as error:
            raise UserError(f"objective: {error}") from None
        read = [
            *(s.list_mi_blocks(count) if s.mi else ()),
            *(s.list_stability_blocks(count) if s.stability else ()),
        ]
        with record_outputs(blocks, range(min(read), max(read) + 1)) as states:
            task_loss, parts = task(model, batch)
        real = batch.real if hasattr(batch, "real") else batch.source.ne(0)
        # bfloat16 has three digits, too few for differences of layers and for cosines divided by a temperature.
        with torch.autocast(real.device.type, enabled=False):
            own = {
                k: state.to(torch.promote_types(state.dtype, torch.float32))
                for k, state in states.items()
            }
            # a Seq2Seq: [S, B, d], or with codes after the words [S, 2 B, d]
            if not hasattr(model, "base_model"):
                own = {k: state[:, : len(real)].transpose(0, 1) for k, state in own.items()}
            losses = compute_regularisers(own, getattr(batch, "words", None), real, s, count)
        added = sum(
            getattr(s, name) * losses[name] for name in ("mi", "stability") if name in losses
        )
        loss = (1 - s.weight) * task_loss + s.weight * added
        return loss, parts | {name: value.detach() for name, value in losses.items()}

    return objective
