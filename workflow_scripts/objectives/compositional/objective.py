"""CAT's pre-training: L = L_GD + L_SC (Eqns 4 to 7), where L_SC has BERT's own tasks for each representation.

cont, comp and mix [B, S, d] are h_cont, h_comp and h_mix of the last layer; real [B, S] is False on padding. All means
over tokens are over the real tokens of the whole batch.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from workflow_scripts.common.errors import UserError
from workflow_scripts.models.cat.model import CodeWeights
from workflow_scripts.objectives.compositional.settings import Settings
from workflow_scripts.tasks.base import Loss, average_over
from workflow_scripts.tasks.masked_lm.batches import MaskedBatch
from workflow_scripts.tasks.masked_lm.model import MaskedLoss, Pretraining, compute_task_losses

CAPTURABLE = False  # losses are of the masked words, whose number is random: see tasks.base.Problem


def compute_guided_decomposition(codes: CodeWeights, share: Tensor, gold: Tensor) -> Tensor:
    """Return the mean over words of sum_j (1 - s_j) |O_j| / sum_j (1 - s_j)   (Eqn 4), or 0 if no word has sememes.

    O of a word is the mean over its pieces: share [B, S] is 1 / number of pieces, or 0 on tokens that are not counted.
    gold [B, S, M] has the numbers j of the word's sememes (s_j = 1), filled up with negative numbers.
    """
    right = gold.ge(0)
    on_right = (codes.weights.gather(-1, gold.clamp(min=0).long()) * right).sum(
        -1
    ) * codes.scale.abs().squeeze(-1)
    wrong = (codes.sum_over_codes() - on_right) / (codes.weights.size(-1) - right.sum(-1)).clamp(
        min=1
    )
    return (wrong * share).sum() / share.sum().clamp(min=1)


def compute_consistency(cont: Tensor, comp: Tensor, real: Tensor, beta: float) -> Tensor:
    """Return |h_comp - sg(h_cont)|^2 + beta |sg(h_comp) - h_cont|^2   (Eqn 5), as a mean over tokens and features."""
    moved = (comp - cont.detach()).square() + beta * (comp.detach() - cont).square()
    return average_over(moved.mean(-1), real)


def compute_nuance_entropy(gaps: Sequence[Tensor], real: Tensor) -> Tensor:
    """Return the mean over layers of exp(-H)   (Eqn 7), between 1/d (all features are equal) and 1.

    H is the mean entropy, in nats, of the softmax over the features of `gaps`, h_cont - h_comp [B, S, d] of each layer.
    """

    def entropy(gap: Tensor) -> Tensor:
        logs = gap.log_softmax(-1)
        return -(logs.exp() * logs).sum(-1)

    return torch.stack([torch.exp(-average_over(entropy(gap), real)) for gap in gaps]).mean()


def build(s: Settings, masked_loss: MaskedLoss) -> Loss:
    """Return objective(model, batch) -> (L, unweighted terms). `masked_loss` is that of masked_lm tasks."""
    next_sentence = masked_loss.next_sentence

    def objective(model: Pretraining, batch: MaskedBatch) -> tuple[Tensor, dict[str, Tensor]]:
        output = model.encoder(batch.ids, batch.real, batch.types)
        mix, cont, comp = output.last_hidden_state, output.contextual, output.compositional
        states = {"mixed": mix, "contextual": cont, "compositional": comp}
        terms, weights = {}, {}
        for name, state in states.items():  # semantic sufficiency (Eqn 6)
            losses = compute_task_losses(model, state, batch, next_sentence)
            terms |= dict(zip((f"mlm_{name}", f"nsp_{name}"), losses, strict=True))
            weights |= dict.fromkeys((f"mlm_{name}", f"nsp_{name}"), getattr(s, name))
        if s.consistency:
            terms["consistency"] = compute_consistency(cont, comp, batch.real, s.beta)
        if s.nuance:
            terms["nuance"] = compute_nuance_entropy(output.gaps, batch.real)
            words, follows = compute_task_losses(model, output.gaps[-1], batch, next_sentence)
            # Two terms (Eqn 10), or one of the sum (Eqn 7).
            two = s.nuance_task == "two"
            terms["nuance_task"] = (
                torch.exp(-words) + torch.exp(-follows) if two else torch.exp(-(words + follows))
            )
            weights["nuance_task"] = s.nuance
        if s.decomposition:
            if not batch.gold.size(-1):
                problem = (
                    f"objective.decomposition is {s.decomposition}, but the batches have no sememes"
                )
                raise UserError(f"{problem}; set problem.sememes to true, or the weight to 0")
            terms["decomposition"] = compute_guided_decomposition(
                output.codes[-1], batch.share, batch.gold
            )
        if s.sparsity:
            # L_1 of Eqn 4: the mean of |O_j| over codes, real tokens and layers.
            means = [codes.sum_over_codes() / codes.weights.size(-1) for codes in output.codes]
            terms["sparsity"] = torch.stack(
                [average_over(mean, batch.real) for mean in means]
            ).mean()
        loss = sum(weights.get(name, getattr(s, name, 1.0)) * term for name, term in terms.items())
        return loss, {name: term.detach() for name, term in terms.items()}

    return objective
