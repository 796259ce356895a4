"""Pre-trained encoders like BERT, and their inputs: one or two sentences with special tokens."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
from torch import Tensor, nn
from transformers import PreTrainedModel

from workflow_scripts.common.errors import UserError
from workflow_scripts.models.encoder.model import PAD
from workflow_scripts.models.hugging_face import use_gradient_checkpointing
from workflow_scripts.models.importing import import_model
from workflow_scripts.models.weights import load_weight_file
from workflow_scripts.tasks.base import Checkpoint
from workflow_scripts.tasks.batching import RaggedSequences
from workflow_scripts.tasks.run_spec import GivenWeightsSpec, NamedSettings, RunSpec

Model = TypeVar("Model", bound=nn.Module)


class EncoderWithHeads(nn.Module):
    """An encoder with `heads`. Its attribute is named by its Hugging Face family, so that its weights load alone."""

    def __init__(self, inner: PreTrainedModel, frozen: bool = False):
        super().__init__()
        self.prefix, self.frozen = inner.base_model_prefix, frozen
        self.add_module(self.prefix, inner.requires_grad_(not frozen))

    @property
    def encoder(self) -> PreTrainedModel:
        """The encoder, without the heads."""
        return getattr(self, self.prefix)

    def compute_states(
        self, ids: Tensor, attention_mask: Tensor, token_types: Tensor
    ) -> dict[str, Tensor]:
        """Return the states of the last layer by readout, each [B, S, d]: `last`, or those that the encoder defines.

        ids, token_types [B, S] int64; attention_mask [B, S], 0 on padding. Models without token types ignore these.
        """
        types = (
            {"token_type_ids": token_types}
            if getattr(self.encoder.config, "type_vocab_size", 1) > 1
            else {}
        )
        output = self.encoder(input_ids=ids, attention_mask=attention_mask, **types)
        return getattr(output, "readouts", {"last": output.last_hidden_state})

    def train(self, mode: bool = True) -> "EncoderWithHeads":
        """Set the mode. A frozen encoder stays in eval mode, so its states do not change."""
        super().train(mode)
        if self.frozen:
            self.encoder.eval()
        return self


def load_encoder(folder: Path, model: NamedSettings) -> PreTrainedModel:
    """Load the encoder of a folder. Raises UserError if it is missing or broken."""
    return import_model(model.name).load_model(folder, model.settings)


def load_fine_tuned(checkpoint: Checkpoint, build: Callable[[PreTrainedModel], Model]) -> Model:
    """Load the weights of a run into the model that `build` makes of an encoder. Raises UserError if a file is broken.

    Weights that are given, not trained on the task, may lack its head.
    """
    model = build(load_encoder(checkpoint.folder, checkpoint.spec.model))
    are_given = isinstance(checkpoint.spec, GivenWeightsSpec)
    load_weight_file(model, checkpoint.folder / "model.safetensors", shared=are_given)
    return model


def load_initial_encoder(spec: RunSpec, init: Path | None) -> PreTrainedModel:
    """Load the encoder of the folder `init` for fine-tuning. Raises UserError if it is missing or broken."""
    if not init:
        raise UserError(
            f"{spec.method_name} starts from a pre-trained encoder; name it with --init"
        )
    encoder = load_encoder(init, spec.model)
    if spec.training.gradient_checkpointing:
        use_gradient_checkpointing(encoder)
    return encoder


def join_sentences(
    first: tuple[RaggedSequences, np.ndarray],
    second: tuple[RaggedSequences, np.ndarray] | None,
    limit: int,
    cls: int,
    sep: int,
    width: int = 0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return (ids, types, real, words) of `[CLS] first [SEP]` or `[CLS] first [SEP] second [SEP]`, all [B, S].

    first, second: sentences and the row [B] of that of each text. limit: tokens of a text, at most. width: S, at least.
    types is 1 from the second sentence on, real is false on padding, words is true on tokens that are not special. Of a
    pair that is too long, the sentence with more than half of the room is cut, or both.
    """
    room = limit - (2 if second is None else 3)
    one = first[0].length[first[1]]
    other = np.zeros_like(one) if second is None else second[0].length[second[1]]
    one = np.minimum(one, np.maximum(room - other, room if second is None else (room + 1) // 2))
    other = np.minimum(other, room - one)
    middle = one[:, None] + 1
    end = middle if second is None else middle + other[:, None] + 1
    column = np.arange(max(int(end.max()) + 1, width))
    real = column <= end
    ids = np.where(real, sep, PAD)
    ids[:, 0] = cls
    words = np.zeros_like(real)
    for side, begin, stop in ((first, 1, middle), (second, middle + 1, end)):
        if side is None:
            continue
        sentences, rows = side
        inside = (column >= begin) & (column < stop)
        position = sentences.start[rows][:, None] + column - begin
        ids[inside] = sentences.ids[position[inside]]
        words |= inside
    return ids, (real & (column > middle)).astype(np.int64), real, words
