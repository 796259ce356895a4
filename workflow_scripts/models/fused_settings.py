"""Settings of the models with fuse-attention; in a module of their own, which no other model imports. No torch here."""

from dataclasses import dataclass
from typing import Literal

from workflow_scripts.models.settings import Seq2SeqSettings, check_at_least_one


@dataclass
class FusedTransformerSettings(Seq2SeqSettings):
    """LRF. The defaults are those of the paper's base model on CoGnition, fairseq's transformer_iwslt_de_en."""

    layers: int = 6
    width: int = 512
    feed_forward: int = 1024
    positions: Literal["relative", "sinusoidal"] = "sinusoidal"
    gated: bool = False
    max_relative_position: int = 16
    # Where layers have fuse-attention. none and wider are the plain Transformer, wider with as many parameters in its
    # feed-forward parts.
    fuse_in: Literal["both", "encoder", "decoder", "none", "wider"] = "both"
    # What a position fuses: its outputs of all earlier layers (H^0 .. H^{l-1}), these and the current layer's attention
    # output, or H^{l-1} alone.
    fuse_over: Literal["earlier", "earlier_and_current", "previous"] = "earlier"
    fuse_weights: Literal["learned", "uniform"] = "learned"  # uniform: the mean of what is fused
    fuse_heads: int = 0  # 0: as many as heads
    fuse_residual: bool = True  # residual and LayerNorm around fuse-attention, as around the other sub-layers
    fuse_shared: bool = False  # one module for all layers of encoder and decoder
    fuse_zero_init: bool = False  # whether the output projection starts at zero

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fuse_heads < 0 or (self.fuse_heads and self.width % self.fuse_heads):
            raise ValueError(f"width {self.width} is not a multiple of fuse_heads {self.fuse_heads}")


@dataclass
class RobertaTransformerSettings(FusedTransformerSettings):
    """RoBERTa's encoder, a decoder of `layers` and `width`. Defaults: those of Zheng and Lapata (2022) on CFQ."""

    layers: int = 2
    heads: int = 8
    width: int = 256
    feed_forward: int = 512
    dropout: float = 0.1
    encoder_layers: int = 12
    encoder_heads: int = 12
    encoder_width: int = 768
    encoder_feed_forward: int = 3072
    encoder_positions: int = 514  # two more than the longest source has pieces

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least_one(self, "encoder_layers", "encoder_heads", "encoder_width", "encoder_feed_forward")
        for name in ("encoder_heads", "fuse_heads"):
            if (heads := getattr(self, name)) and self.encoder_width % heads:
                raise ValueError(f"encoder_width {self.encoder_width} is not a multiple of {name} {heads}")
        if self.fuse_in == "wider" or self.fuse_shared:
            raise ValueError("fuse_in 'wider' and fuse_shared are not for encoders that are read from a folder")


# Where the settings of a model module stand.
SETTINGS = {
    "workflow_scripts.models.fused_transformer": FusedTransformerSettings,
    "workflow_scripts.models.roberta_transformer": RobertaTransformerSettings,
}
