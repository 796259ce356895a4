"""Settings of the Transformer with a choice of how embeddings are scaled."""

from typing import Literal

from workflow_scripts.models.transformer.settings import Settings as TransformerSettings


class Settings(TransformerSettings):
    """Transformer of Csordás et al. (2021)."""

    positions: Literal["relative", "sinusoidal"] = "sinusoidal"
    gated: bool = False
    # up: word vectors times sqrt(width). down: sinusoids over sqrt(width). none: neither.
    scaling: Literal["up", "none", "down"] = "none"
