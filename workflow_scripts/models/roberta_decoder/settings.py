"""Settings of RoBERTa as encoder with a Transformer decoder."""

from typing import Self

from pydantic import model_validator

from workflow_scripts.common.validation import AtLeastOne, Dropout
from workflow_scripts.models.lrf.settings import Settings as FusedSettings


class Settings(FusedSettings):
    """RoBERTa's encoder and a Transformer decoder. Defaults: Zheng and Lapata's (2022) on CFQ."""

    layers: AtLeastOne = 2
    heads: AtLeastOne = 8
    width: AtLeastOne = 256
    feed_forward: AtLeastOne = 512
    dropout: Dropout = 0.1
    encoder_layers: AtLeastOne = 12
    encoder_heads: AtLeastOne = 12
    encoder_width: AtLeastOne = 768
    encoder_feed_forward: AtLeastOne = 3072
    encoder_positions: AtLeastOne = 514  # two more than the pieces of the longest source

    @model_validator(mode="after")
    def _check_encoder(self) -> Self:
        for name in ("encoder_heads", "fuse_heads"):
            heads = getattr(self, name)
            if heads and self.encoder_width % heads:
                raise ValueError(
                    f"encoder_width {self.encoder_width} is not a multiple of {name} {heads}"
                )
        if self.fuse_in == "wider" or self.fuse_shared:
            raise ValueError(
                "fuse_in 'wider' and fuse_shared do not work "
                "with an encoder that is read from a folder"
            )
        return self
