"""CAT's pre-training: L = L_GD + L_SC (Eqns 4 to 7).

L_SC has BERT's own tasks for each representation. cont, comp and mix [B, S, d] are h_cont, h_comp
and h_mix of the last layer; real [B, S] is False on padding. All means over tokens are over the
real tokens of the whole batch. A batch may be computed in parts: then B is a part's, and `whole`
has what is counted in the whole batch, of the shape of what is counted in the part but for B.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from workflow_scripts.common.errors import UserError
from workflow_scripts.models.cat.model import CodeWeights
from workflow_scripts.objectives.compositional.settings import Settings
from workflow_scripts.tasks.base import AdditiveLoss, average_over
from workflow_scripts.tasks.masked_lm.batches import MaskedBatch
from workflow_scripts.tasks.masked_lm.model import MaskedLoss, Pretraining, compute_task_losses

CAPTURABLE = (
    False  # losses are of the masked words, whose number is random: see tasks.base.TrainingSetup
)


def compute_guided_decomposition(
    codes: CodeWeights, share: Tensor, gold: Tensor, whole: Tensor | None = None
) -> Tensor:
    """Return the mean over words of sum_j (1 - s_j) |O_j| / sum_j (1 - s_j)   (Eqn 4).

    It is 0 if no word has sememes. O of a word is the mean over its pieces: share [B, S] is 1 /
    number of pieces, or 0 on tokens that are not counted; whole: that of the whole batch. gold
    [B, S, M] has the numbers j of the word's sememes (s_j = 1), filled up with negative numbers.
    """
    is_sememe = gold.ge(0)
    weights = codes.weights.gather(-1, gold.clamp(min=0).long())
    on_right = (weights * is_sememe).sum(-1) * codes.scale.abs().squeeze(-1)
    wrong_codes = codes.weights.size(-1) - is_sememe.sum(-1)
    wrong = (codes.sum_over_codes() - on_right) / wrong_codes.clamp(min=1)
    if whole is None:
        whole = share
    return (wrong * share).sum() / whole.sum().clamp(min=1)


def compute_consistency(
    cont: Tensor, comp: Tensor, real: Tensor, beta: float, whole: Tensor
) -> Tensor:
    """Return |h_comp - sg(h_cont)|^2 + beta |sg(h_comp) - h_cont|^2   (Eqn 5).

    It is a mean over tokens and features.
    """
    moved = (comp - cont.detach()).square() + beta * (comp.detach() - cont).square()
    return average_over(moved.mean(-1), real, whole)


def compute_gap_entropy(gap: Tensor, real: Tensor, whole: Tensor | None = None) -> Tensor:
    """Return H, the mean entropy, in nats, of the softmax over the features of a gap.

    A gap is h_cont - h_comp [B, S, d] of a layer.
    """
    logs = gap.log_softmax(-1)
    entropy = -(logs.exp() * logs).sum(-1)
    return average_over(entropy, real, whole)


def compute_nuance(entropies: Sequence[Tensor]) -> Tensor:
    """Return the mean over layers of exp(-H)   (Eqn 7), between 1/d (all features are equal) and 1.

    entropies: H of the gap of each layer.
    """
    return torch.stack([torch.exp(-entropy) for entropy in entropies]).mean()


def compute_sparsity(codes_of_layers: Sequence[CodeWeights], real: Tensor, whole: Tensor) -> Tensor:
    """Return L_1 of Eqn 4: the mean over layers of the mean of |O_j| over codes and real tokens."""
    means = [codes.sum_over_codes() / codes.weights.size(-1) for codes in codes_of_layers]
    return torch.stack([average_over(mean, real, whole) for mean in means]).mean()


def build(settings: Settings, masked_loss: MaskedLoss) -> AdditiveLoss:
    """Return the objective. `masked_loss` is that of masked_lm tasks."""
    return CatLoss(settings, masked_loss.next_sentence)


@dataclass(frozen=True)
class CatLoss(AdditiveLoss):
    """objective(model, batch) -> (L, unweighted terms)."""

    settings: Settings
    next_sentence: bool

    @property
    def is_sum(self) -> bool:
        """Whether L is a weighted sum of means: nuance minimisation is exponentials of means."""
        return not self.settings.nuance

    def compute_terms(
        self, model: Pretraining, part: MaskedBatch, whole: MaskedBatch
    ) -> dict[str, Tensor]:
        """Return the means over tokens and pairs of which L is a function.

        Their order is that in which gradients are added up: another one has other last digits.
        """
        settings = self.settings
        output = model.encoder(part.ids, part.real, part.types)
        cont = output.contextual
        comp = output.compositional
        states_of = {"mixed": output.last_hidden_state, "contextual": cont, "compositional": comp}
        terms: dict[str, Tensor] = {}
        for name, states in states_of.items():
            words, follows = compute_task_losses(model, states, part, whole, self.next_sentence)
            terms[f"mlm_{name}"] = words
            terms[f"nsp_{name}"] = follows
        if settings.consistency:
            terms["consistency"] = compute_consistency(
                cont, comp, part.real, settings.beta, whole.real
            )
        if settings.nuance:
            for number, gap in enumerate(output.gaps):
                terms[f"entropy_{number}"] = compute_gap_entropy(gap, part.real, whole.real)
            last_gap = output.gaps[-1]
            words, follows = compute_task_losses(model, last_gap, part, whole, self.next_sentence)
            terms["mlm_gap"] = words
            terms["nsp_gap"] = follows
        if settings.decomposition:
            self._require_sememes(part)
            terms["decomposition"] = compute_guided_decomposition(
                output.codes[-1], part.share, part.gold, whole.share
            )
        if settings.sparsity:
            terms["sparsity"] = compute_sparsity(output.codes, part.real, whole.real)
        return terms

    def combine(self, terms: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        """Return (L, unweighted terms)."""
        available = dict(terms)
        if self.settings.nuance:
            entropies = [term for name, term in terms.items() if name.startswith("entropy_")]
            available["nuance"] = compute_nuance(entropies)
            available["nuance_task"] = self._compute_nuance_task(terms)
        weights = self._list_weights()
        unweighted = {name: available[name] for name in weights if name in available}
        loss = sum(weights[name] * term for name, term in unweighted.items())
        assert isinstance(loss, Tensor), "there are always terms"
        return loss, {name: term.detach() for name, term in unweighted.items()}

    def _list_weights(self) -> dict[str, float]:
        """Return the weights of the terms, in the order of their sum.

        BERT's own tasks by the states of a representation are semantic sufficiency (Eqn 6).
        """
        settings = self.settings
        return {
            "mlm_mixed": settings.mixed,
            "nsp_mixed": settings.mixed,
            "mlm_contextual": settings.contextual,
            "nsp_contextual": settings.contextual,
            "mlm_compositional": settings.compositional,
            "nsp_compositional": settings.compositional,
            "consistency": settings.consistency,
            "nuance": settings.nuance,
            "nuance_task": settings.nuance,
            "decomposition": settings.decomposition,
            "sparsity": settings.sparsity,
        }

    def _compute_nuance_task(self, terms: dict[str, Tensor]) -> Tensor:
        """Return two terms (Eqn 10), or one of the sum (Eqn 7), by the gap of the last layer."""
        words = terms["mlm_gap"]
        follows = terms["nsp_gap"]
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
