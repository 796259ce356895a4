"""BERT's pre-training: the words behind the masks, and whether the second sentence follows the first."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from torch import Tensor
from torch.nn.functional import cross_entropy

from workflow_scripts.models.settings import read_settings
from workflow_scripts.objectives.masked_settings import MaskedSettings

if TYPE_CHECKING:
    from workflow_scripts.models.pretraining import Pretraining
    from workflow_scripts.training.masked_batches import MaskedBatch

IGNORED = -100  # the label of what is not predicted


def word_nats(model: "Pretraining", states: Tensor, batch: "MaskedBatch") -> Tensor:
    """-log p(token) of every masked token, in nats: states [B, S, d] -> [n].

    Scores of the vocabulary are the costly part: none are made for other tokens.
    """
    chosen = batch.labels.ne(IGNORED)
    return cross_entropy(model.heads["words"](states[chosen]).float(), batch.labels[chosen], reduction="none")


def sentence_nats(model: "Pretraining", states: Tensor, batch: "MaskedBatch") -> Tensor:
    """-log p(the second sentence follows, or does not), in nats: states [B, S, d] -> [B]."""
    return cross_entropy(model.heads["next_sentence"](states[:, 0]).float(), batch.follows, reduction="none")


def means(nats: Tensor) -> Tensor:
    """Mean over the items: nats [n] -> scalar; 0 where there are none."""
    return nats.sum() / max(len(nats), 1)


def build(settings: dict) -> Callable[["Pretraining", "MaskedBatch"], tuple[Tensor, dict[str, Tensor]]]:
    """objective(model, batch) -> (L_MLM + L_NSP, parts), each a mean of -log p in nats. `settings`: next_sentence.

    A model with several readouts is trained on its first.
    """
    next_sentence = read_settings(MaskedSettings, settings, "objective").next_sentence

    def objective(model: "Pretraining", batch: "MaskedBatch") -> tuple[Tensor, dict[str, Tensor]]:
        states = next(iter(model.hidden(batch.ids, batch.real, batch.types).values()))
        loss = means(word_nats(model, states, batch))
        parts = {"mlm": loss.detach()}
        if next_sentence:
            follows = means(sentence_nats(model, states, batch))
            loss, parts["nsp"] = loss + follows, follows.detach()
        return loss, parts

    return objective
