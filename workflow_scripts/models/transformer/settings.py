"""Settings of the encoder-decoder Transformer."""

from typing import Literal, Self

from pydantic import model_validator

from workflow_scripts.common.validation import AtLeastOne, Dropout, StrictModel


class Settings(StrictModel):
    """Encoder-decoder Transformer. Defaults: those of SQ-Transformer for SCAN and COGS.

    Layers, heads and widths are of its paper (appendix B.2). Dropout, relative positions with their
    clipping, and the gate are of its official code alone.
    """

    layers: AtLeastOne = 3  # of the encoder and of the decoder, each
    heads: AtLeastOne = 4
    width: AtLeastOne = 256
    feed_forward: AtLeastOne = 512
    dropout: Dropout = 0.3
    positions: Literal["relative", "sinusoidal"] = "relative"
    gated: bool = True  # gated ("highway") feed-forward part
    max_relative_position: AtLeastOne = 20  # distances are clipped to -20 .. 20

    @model_validator(mode="after")
    def _check_sizes(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"width {self.width} is not a multiple of heads {self.heads}")
        if self.positions == "sinusoidal" and self.width % 2:
            raise ValueError(f"width is {self.width}; sinusoidal positions need an even one")
        return self

    @property
    def max_distance(self) -> int | None:
        """Largest distance that relative positions tell apart; None without relative positions."""
        return self.max_relative_position if self.positions == "relative" else None
