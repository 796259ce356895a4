"""CARMA: make the hidden states of a word's tokens similar, and those of consecutive blocks.

L = (1 - lambda) L_task + lambda (gamma L_MI + eta L_stability)   (Eqns 7, 8). All similarities of
L_MI are entries of the Gram matrix H H^T of a sentence, so the number of pairs hardly changes the
cost.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.token_ids import PAD
from workflow_scripts.objectives.carma.settings import Settings
from workflow_scripts.objectives.hidden_states import find_blocks, record_outputs
from workflow_scripts.tasks.base import Loss

EPSILON = 1e-8
CAPTURABLE = (
    False  # the number of terms depends on the words of a batch: see tasks.base.TrainingSetup
)


@dataclass(frozen=True)
class Terms:
    """T terms of the MI loss.

    A term compares the token anchor [T] of the sentence row [T] with other tokens of the sentence.
    positives [T, S] and allowed [T, S] are True at the positives and at the possible negatives.
    """

    row: Tensor
    anchor: Tensor
    positives: Tensor
    allowed: Tensor


def place_bos(words: Tensor, real: Tensor, joined: bool) -> tuple[Tensor, Tensor]:
    """Make BOS part of word 1 if `joined`, else exclude it from all means.

    BOS is a real first token without a word. words [B, S]: index of a token's word in its sentence,
    or -1. real [B, S]: False on padding. Returns (words, counted), both [B, S].
    """
    bos = torch.zeros_like(real)
    bos[:, 0] = words[:, 0].lt(0) & real[:, 0]
    if joined:
        return torch.where(bos, words.roll(-1, dims=1), words), real
    return words, real & ~bos


def find_terms(words: Tensor, counted: Tensor, spans: str, positives: str) -> Terms:
    """Return the terms of a batch.

    words [B, S]: -1 is no word. counted [B, S]: the positions that may be compared. positives
    "pairwise": each pair i < j in a word is a term with anchor i; "logsum": each token of a word
    with several tokens is an anchor, and the others are its positives (Eqn 16). spans "own": words
    of the sentence itself; "batch": the positions of the words of all sentences are words in each
    sentence (official code).
    """
    same = words[:, :, None].eq(words[:, None]) & words.ge(0)[:, :, None]
    pairs = same.triu(diagonal=1)
    places = torch.arange(words.size(1), device=words.device)
    # The size of nonzero's result depends on the data, so the program must wait for the GPU here
    # (and only here).
    if positives == "pairwise":
        row, anchor, partner = pairs.nonzero(as_tuple=True)
        is_positive = places.eq(partner[:, None])
    else:
        row, anchor = (pairs | pairs.mT).any(dim=2).nonzero(as_tuple=True)
        is_positive = same[row, anchor] & places.ne(anchor[:, None])
    is_in_word = same[row, anchor]
    if spans == "batch":
        has_positive = (is_positive.float() @ counted.float().t()).gt(0)
        reached = has_positive & counted.t()[anchor]  # [T, B]
        term, row = reached.nonzero(as_tuple=True)
        anchor = anchor[term]
        is_positive = is_positive[term] & counted[row]
        is_in_word = is_in_word[term]
    return Terms(row, anchor, positives=is_positive, allowed=counted[row] & ~is_in_word)


def sample_negatives(allowed: Tensor, count: int) -> Tensor:
    """Sample `count` allowed positions per row uniformly with replacement.

    allowed [T, S] -> counts [T, S] float. A row without an allowed position is zero. The samples
    come from torch's global generator of the device.
    """
    ranks = allowed.cumsum(dim=1)
    wanted = (torch.rand(len(allowed), count, device=allowed.device) * ranks[:, -1:]).long() + 1
    places = torch.searchsorted(ranks, wanted).clamp_(max=allowed.size(1) - 1)
    drawn = torch.zeros(allowed.shape, device=allowed.device)
    return drawn.scatter_add_(1, places, torch.ones_like(places, dtype=drawn.dtype)) * allowed


def compute_similarities(states: list[Tensor], similarity: str) -> Tensor:
    """Return dot products or cosines of all token pairs of a sentence.

    L states [B, S, d] -> [L, B, S, S].
    """
    half = torch.stack([torch.bmm(state, state.detach().mT) for state in states])
    # The value is H H^T, but its gradient (G + G^T) H needs one product of this size instead of
    # two.
    gram = half + half.mT - half.detach()
    if similarity == "dot":
        return gram
    scale = gram.diagonal(dim1=2, dim2=3).clamp(min=EPSILON**2).rsqrt()
    return gram * scale[..., :, None] * scale[..., None, :]


def compute_mutual_information(
    similarity: Tensor, terms: Terms, negatives: Tensor, temperature: float
) -> tuple[Tensor, Tensor]:
    """Return (L_MI in nats, number of terms).

    similarity c [L, B, S, S]; negatives [T, S]: how often each position is one. L_MI = mean over
    layers and terms of -log(P / (P + N)), where P is the sum of exp(c / tau) over positives, and N
    the sum over negatives   (Eqn 16). Terms without negatives are ignored. Without terms L_MI is 0,
    with a graph.
    """
    scores = similarity[:, terms.row, terms.anchor] / temperature  # [L, T, S]
    usable = negatives.any(dim=1)
    # A term without negatives gets all positions here and weight 0 below, so that its gradient is
    # not 0 times infinity.
    negatives = torch.where(usable[:, None], negatives, 1.0)
    near = (scores + terms.positives.to(scores.dtype).log()).logsumexp(dim=2)
    far = (scores + negatives.log()).logsumexp(dim=2)
    # log(1 + N / P), exact also where N / P is tiny
    losses = nn.functional.softplus(far - near) * usable
    count = usable.sum()
    return losses.sum(dim=1).mean() / count.clamp(min=1), count


def compute_stability(states: list[Tensor], counted: Tensor) -> Tensor:
    """Return sum_k E|h^{k+1} - h^k|^2 / (E|h^k|^2 + E|h^{k+1}|^2 + 1e-8)   (Eqn 6).

    h^k [B, S, d] are the states of consecutive blocks. The means E are over features and counted
    [B, S] positions.
    """
    share = counted / counted.sum().clamp(min=1)
    sizes = torch.stack([_average_squares(state, share) for state in states])
    changes = torch.stack(
        [_average_squares(after - before, share) for before, after in pairwise(states)]
    )
    return (changes / (sizes[:-1] + sizes[1:] + EPSILON)).sum()


def _average_squares(values: Tensor, share: Tensor) -> Tensor:
    """Return the mean of values^2 [B, S, d] over features and positions; share [B, S] sums to 1."""
    return (values.square().mean(dim=2) * share).sum()


def compute_regularisers(
    states: dict[int, Tensor],
    words: Tensor | None,
    real: Tensor,
    settings: Settings,
    block_count: int,
) -> dict[str, Tensor]:
    """Return the unweighted losses `mi` and `stability`, without those of weight 0.

    `mi` comes with `pairs`, its number of terms, and `without_pairs`, 1 if there are none. states:
    block -> [B, S, d]; words [B, S], or None if each token is a word; real [B, S].
    """
    if words is None:
        words = torch.full_like(real, -1, dtype=torch.long)
        counted = real
    else:
        words, counted = place_bos(words, real, settings.bos)
    if settings.padding:
        counted = counted | ~real
    parts = {}
    if settings.mi:
        terms = find_terms(words, counted, settings.spans, settings.positives)
        if settings.negatives:
            negatives = sample_negatives(terms.allowed, settings.negatives)
        else:
            negatives = terms.allowed.float()
        mi_states = [states[block] for block in settings.list_mi_blocks(block_count)]
        similarities = compute_similarities(mi_states, settings.similarity)
        parts["mi"], pairs = compute_mutual_information(
            similarities, terms, negatives, settings.temperature
        )
        parts["pairs"] = pairs.float()
        parts["without_pairs"] = pairs.eq(0).float()
    if settings.stability:
        blocks = settings.list_stability_blocks(block_count)
        parts["stability"] = compute_stability([states[block] for block in blocks], counted)
    return parts


def build(settings: Settings, task_loss: Loss) -> Loss:
    """Return the objective around the loss of a task. With weight 0 it is that loss."""
    if settings.weight == 0:
        return task_loss
    return CarmaLoss(settings, task_loss)


@dataclass(frozen=True)
class CarmaLoss:
    """objective(model, batch) -> (loss, parts of the task's loss and of `compute_regularisers`).

    A batch has words and real [B, S], or source [B, S] and optionally words. In eval mode the
    objective is the task's loss alone.
    """

    settings: Settings
    task_loss: Loss

    def __call__(self, model: nn.Module, batch: Any) -> tuple[Tensor, dict[str, Tensor]]:
        """Return (loss, parts) of a batch."""
        if not model.training:
            return self.task_loss(model, batch)
        settings = self.settings
        blocks = find_blocks(model)
        read_blocks = self._list_read_blocks(len(blocks))
        with record_outputs(blocks, read_blocks) as outputs:
            task_loss, parts = self.task_loss(model, batch)
        real = batch.real if hasattr(batch, "real") else batch.source.ne(PAD)
        words = getattr(batch, "words", None)
        # bfloat16 has three digits, too few for differences of layers and for cosines divided by a
        # temperature.
        with torch.autocast(real.device.type, enabled=False):
            states = prepare_states(outputs, model, len(real))
            losses = compute_regularisers(states, words, real, settings, len(blocks))
        added: Tensor | int = 0
        if "mi" in losses:
            added = added + settings.mi * losses["mi"]
        if "stability" in losses:
            added = added + settings.stability * losses["stability"]
        loss = (1 - settings.weight) * task_loss + settings.weight * added
        return loss, parts | {name: value.detach() for name, value in losses.items()}

    def _list_read_blocks(self, block_count: int) -> range:
        """Return all blocks from the first to the last that a loss reads, both included.

        Raises UserError if the model lacks one of them.
        """
        try:
            self.settings.check_blocks(block_count)
        except ValueError as error:
            raise UserError(f"objective: {error}") from None
        blocks: list[int] = []
        if self.settings.mi:
            blocks += self.settings.list_mi_blocks(block_count)
        if self.settings.stability:
            blocks += self.settings.list_stability_blocks(block_count)
        return range(min(blocks), max(blocks) + 1)


def prepare_states(
    outputs: dict[int, Tensor], model: nn.Module, sentences: int
) -> dict[int, Tensor]:
    """Return the outputs of blocks as states [B, S, d] in at least fp32; B is `sentences`."""
    states = {}
    for block, output in outputs.items():
        state = output.to(torch.promote_types(output.dtype, torch.float32))
        # A Seq2Seq: [S, B, d], or with codes after the words [S, 2 B, d].
        if not hasattr(model, "base_model"):
            state = state[:, :sentences].transpose(0, 1)
        states[block] = state
    return states
