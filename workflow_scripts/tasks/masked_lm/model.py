"""An encoder with the heads and the loss of BERT's pre-training on masked words and sentences."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel

from workflow_scripts.models.hugging_face import get_embeddings
from workflow_scripts.models.importing import import_model
from workflow_scripts.tasks.base import AdditiveLoss
from workflow_scripts.tasks.encoders import EncoderWithHeads
from workflow_scripts.tasks.masked_lm.batches import IGNORED, MaskedBatch
from workflow_scripts.tasks.run_spec import NamedSettings


class Pretraining(EncoderWithHeads):
    """Encoder with heads.words and heads.next_sentence.

    heads.words is linear, d -> V. heads.next_sentence gives 2 scores by the state of the first
    token. The second score is that of a sentence which follows. All readouts share the heads.
    """

    def __init__(self, inner: PreTrainedModel, tied: bool):
        super().__init__(inner)
        embeddings = get_embeddings(inner).weight
        vocabulary, width = embeddings.shape
        words = nn.Linear(width, vocabulary)
        next_sentence = nn.Linear(width, 2)
        for head in (words, next_sentence):
            nn.init.normal_(head.weight, std=inner.config.initializer_range)
            nn.init.zeros_(head.bias)
        if tied:
            words.weight = embeddings
        self.heads = nn.ModuleDict({"words": words, "next_sentence": next_sentence})

    def compute_first_states(self, batch: MaskedBatch) -> Tensor:
        """Return the states [B, S, d] of the model's first readout."""
        states_by_readout = self.compute_states(batch.ids, batch.real, batch.types)
        return next(iter(states_by_readout.values()))


def build(model: NamedSettings, vocabulary: int) -> Pretraining:
    """Build encoder and heads with random weights, in training mode."""
    encoder = import_model(model.name).build(model.settings, vocabulary)
    return Pretraining(encoder, model.settings.tied)


def compute_masked_nll(model: Pretraining, states: Tensor, batch: MaskedBatch) -> Tensor:
    """Return -log p(token) of every masked token, in nats: states [B, S, d] -> [n]."""
    # only these get scores of the vocabulary, which are the costly part
    is_masked = batch.labels.ne(IGNORED)
    scores = model.heads["words"](states[is_masked]).float()
    return cross_entropy(scores, batch.labels[is_masked], reduction="none")


def compute_next_sentence_nll(model: Pretraining, states: Tensor, batch: MaskedBatch) -> Tensor:
    """Return -log p(the second sentence follows, or does not), in nats: states [B, S, d] -> [B]."""
    scores = model.heads["next_sentence"](states[:, 0]).float()
    return cross_entropy(scores, batch.follows, reduction="none")


def compute_task_losses(
    model: Pretraining,
    states: Tensor,
    part: MaskedBatch,
    whole: MaskedBatch,
    next_sentence: bool = True,
) -> tuple[Tensor, Tensor]:
    """Return (MLM, NSP) in nats, for states [B, S, d] of a part of the batch `whole`.

    They are sums over the masked tokens and the pairs of the part, divided by the numbers of those
    in the whole batch. They are 0 where there are none.
    """
    nats = compute_masked_nll(model, states, part)
    masked = len(nats)
    if whole is not part:
        masked = int(whole.labels.ne(IGNORED).sum())
    words = nats.sum() / max(masked, 1)
    if not next_sentence:
        return words, torch.zeros_like(words)
    share = part.count_rows() / whole.count_rows()
    return words, share * compute_next_sentence_nll(model, states, part).mean()


@dataclass(frozen=True)
class MaskedLoss(AdditiveLoss):
    """loss(model, batch) -> (L_MLM + L_NSP, parts), each a mean of -log p in nats.

    Without `next_sentence` the loss is L_MLM. A model with several readouts is trained on its
    first.
    """

    next_sentence: bool = True

    def compute_terms(
        self, model: Pretraining, part: MaskedBatch, whole: MaskedBatch
    ) -> dict[str, Tensor]:
        """Return L_MLM and L_NSP of a part."""
        states = model.compute_first_states(part)
        words, follows = compute_task_losses(model, states, part, whole, self.next_sentence)
        return {"mlm": words, "nsp": follows}

    def combine(self, terms: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        """Return (loss, parts)."""
        parts = {"mlm": terms["mlm"].detach()}
        if self.next_sentence:
            parts["nsp"] = terms["nsp"].detach()
        return terms["mlm"] + terms["nsp"], parts
