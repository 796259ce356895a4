"""RoBERTa as the encoder of a Transformer decoder (LRF on CFQ).

The layers of both have fuse-attention.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa
import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import RobertaConfig, RobertaModel
from transformers.models.roberta.modeling_roberta import RobertaLayer

from workflow_scripts.common.errors import UserError
from workflow_scripts.models.hugging_face import (
    FROM_FOLDER,
    load_tokenizer,
    read_model_config,
    report_read_errors,
)
from workflow_scripts.models.layers.attention import MultiHeadAttention
from workflow_scripts.models.layers.layer_list import LayerList
from workflow_scripts.models.layers.transformer import make_padding_mask
from workflow_scripts.models.lrf.model import FusedTransformer
from workflow_scripts.models.roberta_decoder.settings import Settings
from workflow_scripts.models.transformer.model import EncoderOutput

START = 1  # our id of <s>; RoBERTa's ids of <s> and <pad> are exchanged
NO_ATTENTION = (
    "displays.yaml: the attention of a RoBERTa encoder cannot be analysed; "
    "take its runs out of the analysis' runs"
)
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]  # RoBERTa's first tokens


class RobertaTransformer(FusedTransformer):
    """RoBERTa as encoder, and the decoder of FusedTransformer with its own output layer.

    In the encoder, H_a + dropout(H_p) is the input of the feed-forward part, without another
    LayerNorm, and the output projection of H_p is zero at first, so that a pre-trained encoder
    starts without the effect of fuse-attention.

    Source ids [B, S] are words, or the encoder's own pieces (`Pieces`): 0 is padding, 2 ends a
    sentence. The encoder adds <s> before them.
    """

    capturable = False  # transformers looks at the values of the padding mask

    def __init__(self, settings: Settings, source_vocabulary: int, target_vocabulary: int):
        super().__init__(settings, source_vocabulary, target_vocabulary)
        del self.source_embedding
        self.encoder = LayerList()
        width = settings.encoder_width
        config = RobertaConfig(
            vocab_size=source_vocabulary,
            hidden_size=width,
            num_hidden_layers=settings.encoder_layers,
            num_attention_heads=settings.encoder_heads,
            intermediate_size=settings.encoder_feed_forward,
            hidden_dropout_prob=settings.dropout,
            attention_probs_dropout_prob=settings.dropout,
            max_position_embeddings=settings.encoder_positions,
            type_vocab_size=1,
            layer_norm_eps=1e-5,
        )
        self.roberta = RobertaModel(config, add_pooling_layer=False)
        self.encoder_fuse = nn.ModuleList()
        if settings.fuse_in in ("both", "encoder"):
            for _ in range(settings.encoder_layers):
                self.encoder_fuse.append(
                    self._make_fuse_sublayer(width, settings.encoder_heads, pretrained=True)
                )
        if width != settings.width:
            for layer in self.decoder:
                replace_memory_projections(layer.layer.cross_attention, width)
        self.output = nn.Linear(settings.width, target_vocabulary, bias=False)
        nn.init.normal_(self.output.weight, std=settings.width**-0.5)

    def encode(self, source: Tensor) -> EncoderOutput:
        """Run the encoder on source ids [B, S] -> states [S + 1, B, d], with <s> before them."""
        with_start = torch.cat([torch.full_like(source[:, :1], START), source], dim=1)
        mask = make_padding_mask(with_start)
        roberta_ids = torch.where(with_start < 2, 1 - with_start, with_start)
        states = self.roberta.embeddings(input_ids=roberta_ids)
        # Added to the attention logits: the lowest number where a key is padding.
        added = torch.zeros(mask.shape, dtype=states.dtype, device=mask.device)
        added = added.masked_fill(mask, torch.finfo(states.dtype).min)
        outputs = [states]
        # The library's list does not say of which class its layers are.
        layers = cast("LayerList[RobertaLayer]", self.roberta.encoder.layer)
        for number, layer in enumerate(layers):
            attended = layer.attention(outputs[-1], added)[0]
            if self.encoder_fuse:
                attended = attended + self.encoder_fuse[number](attended, outputs)
            outputs.append(layer.feed_forward_chunk(attended))
        return EncoderOutput(outputs[-1].transpose(0, 1), mask)

    def project(self, states: Tensor) -> Tensor:
        """Return the logits of the output layer: [T, B, d] -> [B, T, V].

        It is not tied to the embedding.
        """
        return self.output(states).transpose(0, 1)

    def compute_encoder_attention(self, source: Tensor) -> Tensor:
        """Raise UserError: the maps of RoBERTa's layers are not implemented."""
        raise UserError(NO_ATTENTION)

    def compute_fusion(
        self, source: Tensor, target_in: Tensor
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Raise UserError: the weights of RoBERTa's layers are not implemented."""
        raise UserError(NO_ATTENTION)

    def read_pretrained(self, folder: Path) -> None:
        """Copy the weights of a folder's model to the encoder.

        Raises UserError if they are broken or of other size.
        """
        with report_read_errors(folder):
            config = read_model_config(folder, "roberta")
            pretrained = RobertaModel.from_pretrained(
                folder, config=config, add_pooling_layer=False, **FROM_FOLDER
            )
        weights = pretrained.state_dict()
        for name, own in self.roberta.state_dict().items():
            needed = list(own.shape)
            shape = list(weights[name].shape) if name in weights else "missing"
            if shape != needed:
                raise UserError(
                    f"{folder}: {name} is {shape}, but the settings need {needed}; "
                    "correct encoder_*"
                )
        self.roberta.load_state_dict(weights)


def replace_memory_projections(attention: MultiHeadAttention, width: int) -> None:
    """Give cross-attention new W_K and W_V, for states of another width than its queries.

    Where the widths differ fairseq draws W_Q, W_K and W_V without the factor 1 / sqrt(2) that
    `make_projections` has, so W_Q is drawn again.
    """
    attention.key = nn.Linear(width, attention.key.out_features)
    attention.value = nn.Linear(width, attention.value.out_features)
    for projection in (attention.query, attention.key, attention.value):
        nn.init.xavier_uniform_(projection.weight)


@dataclass(frozen=True)
class Pieces:
    """The tokenizer of a pre-trained encoder.

    The pieces have our ids, in which 0 and 1 are exchanged.
    """

    tokenizer: Tokenizer

    def list_pieces(self) -> list[str]:
        """Return the pieces in the order of our ids."""
        size = self.tokenizer.get_vocab_size()
        pieces = [self.tokenizer.id_to_token(index) or "" for index in range(size)]
        first, second, *further = pieces
        return [second, first, *further]

    def tokenise(self, table: pa.Table) -> pa.Table:
        """Replace the column `source_ids` by the pieces of `source`, without special tokens."""
        encoded = self.tokenizer.encode_batch_fast(
            table["source"].to_pylist(), add_special_tokens=False
        )
        lists = [np.array(sentence.ids, np.int64) for sentence in encoded]
        offsets = np.cumsum([0, *map(len, lists)], dtype=np.int32)
        ids = np.concatenate(lists)
        our_ids = np.where(ids < 2, 1 - ids, ids)
        column = pa.ListArray.from_arrays(pa.array(offsets), pa.array(our_ids))
        return table.set_column(table.column_names.index("source_ids"), "source_ids", column)


def read_pieces(folder: Path) -> Pieces:
    """Read the tokenizer of a model's folder.

    Raises UserError if it is missing or is not RoBERTa's.
    """
    tokenizer = load_tokenizer(folder)
    first = [tokenizer.id_to_token(index) for index in range(len(SPECIAL))]
    if first != SPECIAL:
        raise UserError(
            f"{folder / 'tokenizer.json'} begins with {first}, not {SPECIAL}; give a RoBERTa model"
        )
    return Pieces(tokenizer)


def build(settings: Settings, source_vocabulary: int, target_vocabulary: int) -> RobertaTransformer:
    """Build the model with random weights."""
    return RobertaTransformer(settings, source_vocabulary, target_vocabulary)
