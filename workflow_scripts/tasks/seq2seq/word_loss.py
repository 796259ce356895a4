"""The loss of seq2seq tasks: the cross-entropy of the target's words."""

from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from workflow_scripts.common.token_ids import PAD
from workflow_scripts.tasks.base import average_over
from workflow_scripts.tasks.batching import Batch


def compute_word_cross_entropy(logits: Tensor, target: Tensor, label_smoothing: float) -> Tensor:
    """Return the label-smoothed cross-entropy of the words that are not padding, in nats.

    (1 - eps) mean_n(-log p(y_n)) - eps mean_{n,v}(log p(v)); logits [B, T, V], target [B, T].
    """
    flat_logits = logits.flatten(0, 1).float()
    flat_target = target.flatten()
    losses = cross_entropy(
        flat_logits, flat_target, label_smoothing=label_smoothing, reduction="none"
    )
    return average_over(losses, flat_target.ne(PAD))


@dataclass(frozen=True)
class WordLoss:
    """loss(model, batch) -> (cross-entropy of the target's words, parts)."""

    label_smoothing: float = 0.0

    def __call__(self, model: nn.Module, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Return (loss, parts) of a batch."""
        logits = model(batch.source, batch.target_in).logits
        loss = compute_word_cross_entropy(logits, batch.target_out, self.label_smoothing)
        return loss, {"word": loss.detach()}
