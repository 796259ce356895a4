"""RoBERTa as the encoder of a Transformer decoder, with fuse-attention in the layers of both (LRF on CFQ)."""

from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import RobertaConfig, RobertaModel

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import parse_as
from workflow_scripts.models.hugging_face import (
    FROM_FOLDER,
    hide_library_messages,
    read_model_config,
    report_read_errors,
)
from workflow_scripts.models.layers.transformer import make_padding_mask
from workflow_scripts.models.lrf.model import FusedTransformer
from workflow_scripts.models.roberta_decoder.pieces import read_pieces  # noqa: F401 (training and evaluation read it from here)
from workflow_scripts.models.roberta_decoder.settings import Settings
from workflow_scripts.models.transformer.model import EncoderOutput

START = 1  # our id of <s>; RoBERTa's ids of <s> and <pad> are exchanged


class RobertaTransformer(FusedTransformer):
    """RoBERTa as encoder, and the decoder of FusedTransformer with its own output layer.

    In the encoder, H_a + dropout(H_p) is the input of the feed-forward part, without another LayerNorm, and the output
    projection of H_p is zero at first, so that a pre-trained encoder starts without the effect of fuse-attention.

    Source ids [B, S] are words, or the encoder's own pieces (`roberta_decoder.pieces`): 0 is padding, 2 ends a
    sentence. The encoder adds <s> before them.
    """

    settings: Settings

    def __init__(self, settings: Settings, source_vocabulary: int, target_vocabulary: int):
        super().__init__(settings, source_vocabulary, target_vocabulary)
        del self.source_embedding
        self.encoder = nn.ModuleList()
        width, dropout = settings.encoder_width, settings.dropout
        config = RobertaConfig(
            vocab_size=source_vocabulary,
            hidden_size=width,
            num_hidden_layers=settings.encoder_layers,
            num_attention_heads=settings.encoder_heads,
            intermediate_size=settings.encoder_feed_forward,
            hidden_dropout_prob=dropout,
            attention_probs_dropout_prob=dropout,
            max_position_embeddings=settings.encoder_positions,
            type_vocab_size=1,
            layer_norm_eps=1e-5,
        )
        hide_library_messages()
        self.roberta = RobertaModel(config, add_pooling_layer=False)
        fuses = settings.fuse_in in ("both", "encoder")
        sublayers = range(settings.encoder_layers if fuses else 0)
        self.encoder_fuse = nn.ModuleList(self._sublayer(width, settings.encoder_heads, True) for _ in sublayers)
        for layer in self.decoder:  # the encoder's output has another width
            cross = layer.layer.cross_attention
            cross.key, cross.value = nn.Linear(width, settings.width), nn.Linear(width, settings.width)
            for projection in (cross.key, cross.value):
                nn.init.xavier_uniform_(projection.weight, gain=2**-0.5)
        self.output = nn.Linear(settings.width, target_vocabulary, bias=False)
        nn.init.normal_(self.output.weight, std=settings.width**-0.5)

    def encode(self, source: Tensor) -> EncoderOutput:
        """Run the encoder on [B, S] -> states [S + 1, B, d]."""
        source = torch.cat([torch.full_like(source[:, :1], START), source], dim=1)
        mask = make_padding_mask(source)
        states = self.roberta.embeddings(input_ids=torch.where(source < 2, 1 - source, source))
        # Added to the attention logits: the lowest number where a key is padding.
        added = torch.zeros(mask.shape, dtype=states.dtype, device=mask.device)
        added = added.masked_fill(mask, torch.finfo(states.dtype).min)
        outputs = [states]
        for number, layer in enumerate(self.roberta.encoder.layer):
            attended = layer.attention(outputs[-1], added)[0]
            if self.encoder_fuse:
                attended = attended + self.encoder_fuse[number](attended, outputs)
            outputs.append(layer.feed_forward_chunk(attended))
        return EncoderOutput(outputs[-1].transpose(0, 1), mask)

    def project(self, states: Tensor) -> Tensor:
        """Return the logits of the output layer, which is not tied to the embedding: [T, B, d] -> [B, T, V]."""
        return self.output(states).transpose(0, 1)

    def read_pretrained(self, folder: Path) -> None:
        """Copy the weights of a folder's model into the encoder.

        Raises UserError if they cannot be read, or if their sizes differ from the settings.
        """
        with report_read_errors(folder):
            config = read_model_config(folder, "roberta")
            found = RobertaModel.from_pretrained(folder, config=config, add_pooling_layer=False, **FROM_FOLDER)
        weights = found.state_dict()
        for name, own in self.roberta.state_dict().items():
            shape = list(weights[name].shape) if name in weights else "missing"
            if shape != list(own.shape):
                needed = list(own.shape)
                raise UserError(f"{folder}: {name} is {shape}, but the settings need {needed}; correct encoder_*")
        self.roberta.load_state_dict(weights)


def build(settings: dict, source_vocabulary: int, target_vocabulary: int) -> RobertaTransformer:
    """Build the model with random weights. Raises UserError for settings that `Settings` does not allow."""
    found = parse_as(Settings, settings, "model")
    return RobertaTransformer(found, source_vocabulary, target_vocabulary)
