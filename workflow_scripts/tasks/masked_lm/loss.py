"""BERT's pre-training loss: masked words, and whether the second sentence follows."""

from dataclasses import dataclass

from torch import Tensor
from torch.nn.functional import cross_entropy

from workflow_scripts.tasks.masked_lm.batches import IGNORED, MaskedBatch
from workflow_scripts.tasks.masked_lm.model import Pretraining


def compute_masked_nll(model: Pretraining, states: Tensor, batch: MaskedBatch) -> Tensor:
    """Return -log p(token) of every masked token, in nats: states [B, S, d] -> [n].

    Only masked tokens get scores of the vocabulary, which are the costly part.
    """
    chosen = batch.labels.ne(IGNORED)
    return cross_entropy(model.heads["words"](states[chosen]).float(), batch.labels[chosen], reduction="none")


def compute_next_sentence_nll(model: Pretraining, states: Tensor, batch: MaskedBatch) -> Tensor:
    """Return -log p(the second sentence follows, or does not), in nats: states [B, S, d] -> [B]."""
    return cross_entropy(model.heads["next_sentence"](states[:, 0]).float(), batch.follows, reduction="none")


def average_nll(nats: Tensor) -> Tensor:
    """Return the mean over the items: nats [n] -> scalar; 0 without items."""
    return nats.sum() / max(len(nats), 1)


@dataclass(frozen=True)
class MaskedLoss:
    """loss(model, batch) -> (L_MLM + L_NSP, parts), each a mean of -log p in nats; without `next_sentence`, L_MLM.

    A model with several readouts is trained on its first.
    """

    next_sentence: bool = True

    def __call__(self, model: Pretraining, batch: MaskedBatch) -> tuple[Tensor, dict[str, Tensor]]:
        """Return (loss, parts) of a batch."""
        states = next(iter(model.compute_states(batch.ids, batch.real, batch.types).values()))
        loss = average_nll(compute_masked_nll(model, states, batch))
        parts = {"mlm": loss.detach()}
        if self.next_sentence:
            follows = average_nll(compute_next_sentence_nll(model, states, batch))
            loss, parts["nsp"] = loss + follows, follows.detach()
        return loss, parts
