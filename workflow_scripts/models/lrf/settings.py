"""Settings of LRF, the Transformer with fuse-attention."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from workflow_scripts.common.validation import AtLeastOne
from workflow_scripts.models.transformer.settings import Settings as TransformerSettings


class Settings(TransformerSettings):
    """LRF. Defaults: the paper's base model on CoGnition, fairseq's transformer_iwslt_de_en."""

    layers: AtLeastOne = 6
    width: AtLeastOne = 512
    feed_forward: AtLeastOne = 1024
    positions: Literal["relative", "sinusoidal"] = "sinusoidal"
    gated: bool = False
    max_relative_position: AtLeastOne = 16
    # Layers with fuse-attention. none: the plain Transformer. wider: the plain Transformer, with
    # the same number of parameters as LRF by wider feed-forward parts.
    fuse_in: Literal["both", "encoder", "decoder", "none", "wider"] = "both"
    # Inputs of fuse-attention: outputs of all earlier layers (H^0 .. H^{l-1}), these and the
    # attention output of the current layer, or H^{l-1} alone.
    fuse_over: Literal["earlier", "earlier_and_current", "previous"] = "earlier"
    fuse_weights: Literal["learned", "uniform"] = "learned"  # uniform: the mean of the inputs
    fuse_heads: Annotated[int, Field(ge=0)] = 0  # 0: as many as heads
    # Residual and LayerNorm around fuse-attention, as around the other sub-layers.
    fuse_residual: bool = True
    fuse_shared: bool = False  # one module for all layers of encoder and decoder
    fuse_zero_init: bool = False  # whether the output projection starts at zero

    @model_validator(mode="after")
    def _check_heads(self) -> Self:
        if self.fuse_heads and self.width % self.fuse_heads:
            raise ValueError(
                f"width {self.width} is not a multiple of fuse_heads {self.fuse_heads}"
            )
        return self
