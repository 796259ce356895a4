"""Encoders with bidirectional attention: Hugging Face's BERT, RoBERTa and DistilBERT.

model.safetensors of a folder may also contain the weights of heads.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import (
    AutoModel,
    BertConfig,
    DistilBertConfig,
    PretrainedConfig,
    PreTrainedModel,
    RobertaConfig,
)

from workflow_scripts.common.errors import UserError
from workflow_scripts.models.encoder.settings import Settings
from workflow_scripts.models.hugging_face import (
    FROM_FOLDER,
    check_loaded,
    map_sizes,
    read_model_config,
    report_read_errors,
)

PAD = 0  # of bert-base-uncased and of the tokenizers that are trained here
# Names of padding, the first token, the end of a sentence and a masked word, and how many ends of a
# sentence are between two sentences: of BERT's tokenizers, and of RoBERTa's.
SPECIAL = {("[PAD]", "[CLS]", "[SEP]", "[MASK]"): 1, ("<pad>", "<s>", "</s>", "<mask>"): 2}
# Names of dropout rates in the families' configurations. They come from the settings, not from a
# loaded folder.
DROPOUTS = ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout")


def build_encoder_config(settings: Settings, vocabulary: int) -> PretrainedConfig:
    """Return the family's configuration with the sizes of `settings` and this vocabulary size."""
    if settings.family == "distilbert":
        return DistilBertConfig(
            n_layers=settings.layers,
            n_heads=settings.heads,
            dim=settings.width,
            hidden_dim=settings.feed_forward,
            vocab_size=vocabulary,
            max_position_embeddings=settings.positions,
            pad_token_id=PAD,
            initializer_range=settings.deviation,
            dropout=settings.dropout,
            attention_dropout=settings.dropout,
        )
    sizes = map_bert_sizes(settings, vocabulary)
    if settings.family == "roberta":
        # RoBERTa's positions start after the id of padding, and it has a single token type.
        sizes["max_position_embeddings"] = settings.positions + PAD + 1
        sizes["type_vocab_size"] = 1
        return RobertaConfig(**sizes, bos_token_id=None, eos_token_id=None)
    return BertConfig(**sizes)


def map_bert_sizes(settings: Settings, vocabulary: int) -> dict[str, Any]:
    """Return the settings under the names of BERT's configuration."""
    return {
        **map_sizes(settings, vocabulary),
        "pad_token_id": PAD,
        "initializer_range": settings.deviation,
        "intermediate_size": settings.feed_forward,
        "hidden_dropout_prob": settings.dropout,
        "attention_probs_dropout_prob": settings.dropout,
    }


def build(settings: Settings, vocabulary: int) -> PreTrainedModel:
    """Build an encoder with random float32 weights, in training mode, without head and pooler."""
    return build_from_config(build_encoder_config(settings, vocabulary))


def load_model(folder: Path, settings: Settings) -> PreTrainedModel:
    """Load a folder's encoder, float32, in training mode, with the dropout of `settings`.

    Raises UserError.
    """
    build_config = partial(build_encoder_config, settings)
    return load_with_config(folder, settings.family, build_config, settings.first_layers)


def build_from_config(config: PretrainedConfig) -> PreTrainedModel:
    """Build an encoder with random float32 weights, in training mode, without a pooler."""
    return AutoModel.from_config(
        config, dtype=torch.float32, **_make_pooler_arguments(config)
    ).train()


def load_with_config(
    folder: Path,
    family: str,
    build_config: Callable[[int], PretrainedConfig],
    first_layers: int | None = None,
) -> PreTrainedModel:
    """Load the encoder of a folder, float32, without a pooler, in training mode.

    Its dropout is that of `build_config(vocabulary)`, with the vocabulary size of the folder.
    first_layers: how many layers are kept; None: all. Raises UserError if the folder has no model
    of the family, or a broken one, or fewer layers than are to be kept.
    """
    with report_read_errors(folder):
        config = read_model_config(folder, family)
        if first_layers:
            keep_first_layers(config, first_layers, folder)
        configured = build_config(config.vocab_size)
        for name in DROPOUTS:
            if hasattr(configured, name):
                setattr(config, name, getattr(configured, name))
        model, report = AutoModel.from_pretrained(
            folder,
            config=config,
            output_loading_info=True,
            **FROM_FOLDER,
            **_make_pooler_arguments(config),
        )
    check_loaded(model, report, folder)
    return model.train()


def keep_first_layers(config: PretrainedConfig, layers: int, folder: Path) -> None:
    """Set the number of layers of a configuration: the loader reads no others.

    Raises UserError if it has fewer.
    """
    if config.num_hidden_layers < layers:
        raise UserError(
            f"{folder} has {config.num_hidden_layers} layers, and model.first_layers is {layers}; "
            "lower it"
        )
    config.num_hidden_layers = layers


def _make_pooler_arguments(config: PretrainedConfig) -> dict[str, bool]:
    """Return the arguments that leave out the pooler; none for a family that has no pooler."""
    if config.model_type in ("bert", "roberta"):
        return {"add_pooling_layer": False}
    return {}


@dataclass(frozen=True)
class SpecialTokens:
    """Ids of the special tokens of a text.

    separators: how many [SEP] are between two sentences.
    """

    cls: int
    sep: int
    pad: int = PAD
    separators: int = 1


@dataclass(frozen=True)
class Vocabulary:
    """Special tokens and pieces of a tokenizer.

    ordinary: ids that may replace a masked word. continues [V] bool: True for word pieces that do
    not begin a word; False for all of RoBERTa's pieces.
    """

    special: SpecialTokens
    mask: int
    ordinary: np.ndarray
    continues: np.ndarray


def extract_vocabulary(tokenizer: Tokenizer, file: Path) -> Vocabulary:
    """Read special tokens and pieces of the tokenizer of a file.

    Raises UserError unless it has the special tokens of BERT, with PAD, or those of RoBERTa.
    """
    special, mask = find_special_tokens(tokenizer, file)
    size = tokenizer.get_vocab_size()
    ordinary = np.setdiff1d(np.arange(size), [special.pad, special.cls, special.sep, mask])
    pieces = [tokenizer.id_to_token(token) or "" for token in range(size)]
    continues = np.array([piece.startswith("##") for piece in pieces])
    return Vocabulary(special, mask, ordinary, continues)


def find_special_tokens(tokenizer: Tokenizer, file: Path) -> tuple[SpecialTokens, int]:
    """Return the special tokens of a tokenizer, and the id of a masked word. Raises UserError."""
    for names, separators in SPECIAL.items():
        found = [tokenizer.token_to_id(name) for name in names]
        ids = [token for token in found if token is not None]
        if len(ids) < len(names):
            continue
        pad, cls, sep, mask = ids
        if separators == 1 and pad != PAD:
            raise UserError(f"{file} has {pad} for [PAD], not {PAD}; make or fetch it again")
        return SpecialTokens(cls, sep, pad, separators), mask
    raise UserError(
        f"{file} is no tokenizer of BERT's or RoBERTa's kind: it has neither "
        f"{' nor '.join(', '.join(names) for names in SPECIAL)}"
    )
