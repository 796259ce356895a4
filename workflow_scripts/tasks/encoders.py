"""Pre-trained encoders like BERT, and their inputs: one or two sentences with special tokens."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from torch import Tensor, nn
from transformers import PreTrainedModel

from workflow_scripts.common.errors import UserError
from workflow_scripts.models.encoder.model import SpecialTokens, find_special_tokens
from workflow_scripts.models.hugging_face import load_tokenizer
from workflow_scripts.models.importing import import_model
from workflow_scripts.models.weights import load_weight_file
from workflow_scripts.tasks.base import Checkpoint
from workflow_scripts.tasks.batching import RaggedSequences
from workflow_scripts.tasks.gradient_checkpointing import set_gradient_checkpointing
from workflow_scripts.tasks.run_spec import GivenWeightsSpec, NamedSettings, RunSpec

Model = TypeVar("Model", bound=nn.Module)


class EncoderWithHeads(nn.Module):
    """An encoder with `heads`.

    Its attribute is named by its Hugging Face family, so that its weights load alone.
    """

    def __init__(self, inner: PreTrainedModel, frozen: bool = False):
        super().__init__()
        self.prefix = inner.base_model_prefix
        self.frozen = frozen
        self.add_module(self.prefix, inner.requires_grad_(not frozen))

    @property
    def encoder(self) -> PreTrainedModel:
        """The encoder, without the heads."""
        return getattr(self, self.prefix)

    def compute_states(
        self, ids: Tensor, attention_mask: Tensor, token_types: Tensor
    ) -> dict[str, Tensor]:
        """Return the states of the last layer by readout, each [B, S, d].

        The readouts are `last`, or those that the encoder defines. ids, token_types [B, S] int64;
        attention_mask [B, S], 0 on padding. Models without token types ignore these.
        """
        inputs = {"input_ids": ids, "attention_mask": attention_mask}
        if getattr(self.encoder.config, "type_vocab_size", 1) > 1:
            inputs["token_type_ids"] = token_types
        output = self.encoder(**inputs)
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
    """Load the weights of a run into the model that `build` makes of an encoder.

    Raises UserError if a file is broken. Weights that are given, not trained on the task, may lack
    its head.
    """
    model = build(load_encoder(checkpoint.folder, checkpoint.spec.model))
    are_given = isinstance(checkpoint.spec, GivenWeightsSpec)
    load_weight_file(model, checkpoint.folder / "model.safetensors", shared=are_given)
    return model


def load_initial_encoder(spec: RunSpec, init: Path | None) -> PreTrainedModel:
    """Load the encoder of the folder `init` for fine-tuning.

    Raises UserError if it is missing or broken, or has the tokenizer of another model.
    """
    if not init:
        raise UserError(
            f"{spec.method_name} starts from a pre-trained encoder; name it with --init"
        )
    encoder = load_encoder(init, spec.model)
    tokenizer_file = init / "tokenizer.json"
    special, _ = find_special_tokens(load_tokenizer(init), tokenizer_file)
    if special.pad != encoder.config.pad_token_id:
        raise UserError(
            f"{tokenizer_file} has {special.pad} for padding, config.json "
            f"{encoder.config.pad_token_id}; fetch the model again"
        )
    set_gradient_checkpointing(encoder, spec.training)
    return encoder


class SelectedSequences(NamedTuple):
    """The sentences of B texts: sequences, and the row of each text's sentence in them, [B]."""

    sequences: RaggedSequences
    rows: np.ndarray

    @property
    def length(self) -> np.ndarray:
        """Number of tokens of each sentence [B]."""
        return self.sequences.length[self.rows]


class JoinedSentences(NamedTuple):
    """Texts with special tokens, padded on the right, all [B, S].

    ids, types int64: types is 1 from the second sentence on. real bool: false on padding. words
    bool: true on tokens that are not special.
    """

    ids: np.ndarray
    types: np.ndarray
    real: np.ndarray
    words: np.ndarray


def join_sentences(
    first: SelectedSequences,
    second: SelectedSequences | None,
    limit: int,
    special: SpecialTokens,
    width: int = 0,
) -> JoinedSentences:
    """Make the texts `[CLS] first [SEP]`, or `[CLS] first [SEP] second [SEP]`.

    Between two sentences there may be more than one [SEP]. limit: tokens of a text, at most. width:
    S, at least. Of a pair that is too long, the sentence with more than half of the room is cut, or
    both.
    """
    separators = special.separators
    # The positions of [SEP] after the first sentence, and of the last [SEP]: [B, 1].
    if second is None:
        first_length = np.minimum(first.length, limit - 2)
        first_end = first_length[:, None] + 1
        text_end = first_end
    else:
        room = limit - 2 - separators
        first_room = np.maximum(room - second.length, (room + 1) // 2)
        first_length = np.minimum(first.length, first_room)
        second_length = np.minimum(second.length, room - first_length)
        first_end = first_length[:, None] + 1
        text_end = first_end + second_length[:, None] + separators

    column = np.arange(max(int(text_end.max()) + 1, width))
    real = column <= text_end
    types = (real & (column > first_end)).astype(np.int64)
    ids = np.where(real, special.sep, special.pad)
    ids[:, 0] = special.cls
    words = np.zeros_like(real)
    _place_sentences(first, 1, first_end, ids, words)
    if second is not None:
        _place_sentences(second, first_end + separators, text_end, ids, words)
    return JoinedSentences(ids, types, real, words)


def _place_sentences(
    sentences: SelectedSequences,
    begin: int | np.ndarray,
    end: np.ndarray,
    ids: np.ndarray,
    words: np.ndarray,
) -> None:
    """Write sentences to the columns begin to end - 1 of ids, and mark them in words.

    begin, end: [B, 1], or one for all texts.
    """
    sequences, rows = sentences
    column = np.arange(ids.shape[1])
    inside = (column >= begin) & (column < end)
    position = sequences.start[rows][:, None] + column - begin
    ids[inside] = sequences.ids[position[inside]]
    words |= inside
