"""The loss of seq2seq tasks: the cross-entropy of the target's words."""

from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from workflow_scripts.data.token_ids import PAD
from workflow_scripts.tasks.base import AdditiveLoss, average_over
from workflow_scripts.tasks.batching import Batch


def compute_word_cross_entropy(
    logits: Tensor, target: Tensor, label_smoothing: float, whole: Tensor | None = None
) -> Tensor:
    """Return the label-smoothed cross-entropy of the words that are not padding, in nats.

    (1 - eps) mean_n(-log p(y_n)) - eps mean_{n,v}(log p(v)); logits [B, T, V], target [B, T].
    whole: the targets of the batch of which these are a part, whose words are counted.
    """
    flat_logits = logits.flatten(0, 1).float()
    flat_target = target.flatten()
    losses = cross_entropy(
        flat_logits, flat_target, label_smoothing=label_smoothing, reduction="none"
    )
    counted = None if whole is None else whole.ne(PAD)
    return average_over(losses, flat_target.ne(PAD), counted)


@dataclass(frozen=True)
class WordLoss(AdditiveLoss):
    """loss(model, batch) -> (cross-entropy of the target's words, parts)."""

    label_smoothing: float = 0.0

    def compute_terms(self, model: nn.Module, part: Batch, whole: Batch) -> dict[str, Tensor]:
        """Return the cross-entropy of a part."""
        logits = model(part.source, part.target_in).logits
        loss = compute_word_cross_entropy(
            logits, part.target_out, self.label_smoothing, whole.target_out
        )
        return {"word": loss}

    def combine(self, terms: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        """Return (loss, parts)."""
        loss = terms["word"]
        return loss, {"word": loss.detach()}
