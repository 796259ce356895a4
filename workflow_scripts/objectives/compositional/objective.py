"""CAT's pre-training: L = L_GD + L_SC (Eqns 4 to 7).

L_SC has BERT's own tasks for each representation. cont, comp and mix [B, S, d] are h_cont, h_comp
and h_mix of the last layer; real [B, S] is False on padding. All means over tokens are over the
real tokens of the whole batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from workflow_scripts.common.errors import UserError
from workflow_scripts.models.cat.model import CodeWeights
from workflow_scripts.objectives.compositional.settings import Settings
from workflow_scripts.tasks.base import Loss, average_over
from workflow_scripts.tasks.masked_lm.batches import MaskedBatch
from workflow_scripts.tasks.masked_lm.model import MaskedLoss, Pretraining, compute_task_losses

CAPTURABLE = (
    False  # losses are of the masked words, whose number is random: see tasks.base.TrainingSetup
)


def compute_guided_decomposition(codes: CodeWeights, share: Tensor, gold: Tensor) -> Tensor:
    """Return the mean over words of sum_j (1 - s_j) |O_j| / sum_j (1 - s_j)   (Eqn 4).

    It is 0 if no word has sememes. O of a word is the mean over its pieces: share [B, S] is 1 /
    number of pieces, or 0 on tokens that are not counted. gold [B, S, M] has the numbers j of the
    word's sememes (s_j = 1), filled up with negative numbers.
    """
    is_sememe = gold.ge(0)
    weights = codes.weights.gather(-1, gold.clamp(min=0).long())
    on_right = (weights * is_sememe).sum(-1) * codes.scale.abs().squeeze(-1)
    wrong_codes = codes.weights.size(-1) - is_sememe.sum(-1)
    wrong = (codes.sum_over_codes() - on_right) / wrong_codes.clamp(min=1)
    return (wrong * share).sum() / share.sum().clamp(min=1)


def compute_consistency(cont: Tensor, comp: Tensor, real: Tensor, beta: float) -> Tensor:
    """Return |h_comp - sg(h_cont)|^2 + beta |sg(h_comp) - h_cont|^2   (Eqn 5).

    It is a mean over tokens and features.
    """
    moved = (comp - cont.detach()).square() + beta * (comp.detach() - cont).square()
    return average_over(moved.mean(-1), real)


def compute_nuance_entropy(gaps: Sequence[Tensor], real: Tensor) -> Tensor:
    """Return the mean over layers of exp(-H)   (Eqn 7), between 1/d (all features are equal) and 1.

    H is the mean entropy, in nats, of the softmax over the features of `gaps`, which are
    h_cont - h_comp [B, S, d] of each layer.
    """
    values = []
    for gap in gaps:
        logs = gap.log_softmax(-1)
        entropy = -(logs.exp() * logs).sum(-1)
        values.append(torch.exp(-average_over(entropy, real)))
    return torch.stack(values).mean()


def compute_sparsity(codes_of_layers: Sequence[CodeWeights], real: Tensor) -> Tensor:
    """Return L_1 of Eqn 4: the mean of |O_j| over codes, real tokens and layers."""
    means = [codes.sum_over_codes() / codes.weights.size(-1) for codes in codes_of_layers]
    return torch.stack([average_over(mean, real) for mean in means]).mean()


def build(settings: Settings, masked_loss: MaskedLoss) -> Loss:
    """Return the objective. `masked_loss` is that of masked_lm tasks."""
    return CatLoss(settings, masked_loss.next_sentence)


class Term(NamedTuple):
    """An unweighted term of the loss."""

    value: Tensor
    weight: float


@dataclass(frozen=True)
class CatLoss:
    """objective(model, batch) -> (L, unweighted terms)."""

    settings: Settings
    next_sentence: bool

    def __call__(self, model: Pretraining, batch: MaskedBatch) -> tuple[Tensor, dict[str, Tensor]]:
        """Return (L, unweighted terms) of a batch."""
        settings = self.settings
        output = model.encoder(batch.ids, batch.real, batch.types)
        mix = output.last_hidden_state
        cont = output.contextual
        comp = output.compositional
        terms: dict[str, Term] = {}
        self._add_task_terms(terms, model, mix, batch, "mixed", settings.mixed)
        self._add_task_terms(terms, model, cont, batch, "contextual", settings.contextual)
        self._add_task_terms(terms, model, comp, batch, "compositional", settings.compositional)
        if settings.consistency:
            consistency = compute_consistency(cont, comp, batch.real, settings.beta)
            terms["consistency"] = Term(consistency, settings.consistency)
        if settings.nuance:
            nuance = compute_nuance_entropy(output.gaps, batch.real)
            terms["nuance"] = Term(nuance, settings.nuance)
            nuance_task = self._compute_nuance_task(model, output.gaps[-1], batch)
            terms["nuance_task"] = Term(nuance_task, settings.nuance)
        if settings.decomposition:
            self._require_sememes(batch)
            decomposition = compute_guided_decomposition(output.codes[-1], batch.share, batch.gold)
            terms["decomposition"] = Term(decomposition, settings.decomposition)
        if settings.sparsity:
            sparsity = compute_sparsity(output.codes, batch.real)
            terms["sparsity"] = Term(sparsity, settings.sparsity)
        loss = sum(term.weight * term.value for term in terms.values())
        return loss, {name: term.value.detach() for name, term in terms.items()}

    def _add_task_terms(
        self,
        terms: dict[str, Term],
        model: Pretraining,
        states: Tensor,
        batch: MaskedBatch,
        name: str,
        weight: float,
    ) -> None:
        """Add BERT's own tasks by the states of a representation: semantic sufficiency (Eqn 6)."""
        words, follows = compute_task_losses(model, states, batch, self.next_sentence)
        terms[f"mlm_{name}"] = Term(words, weight)
        terms[f"nsp_{name}"] = Term(follows, weight)

    def _compute_nuance_task(self, model: Pretraining, gap: Tensor, batch: MaskedBatch) -> Tensor:
        """Return two terms (Eqn 10), or one of the sum (Eqn 7), by the gap of the last layer."""
        words, follows = compute_task_losses(model, gap, batch, self.next_sentence)
        if self.settings.nuance_task == "two":
            return torch.exp(-words) + torch.exp(-follows)
        return torch.exp(-(words + follows))

    def _require_sememes(self, batch: MaskedBatch) -> None:
        """Raise UserError if the batches have no sememes."""
        if not batch.gold.size(-1):
            raise UserError(
                f"objective.decomposition is {self.settings.decomposition}, but the batches have "
                "no sememes; set problem.sememes to true, or the weight to 0"
            )
