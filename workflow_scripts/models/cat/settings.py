"""Settings of CAT."""

from typing import ClassVar, Literal, Self

from pydantic import model_validator

from workflow_scripts.common.validation import AtLeastOne
from workflow_scripts.models.encoder.settings import Settings as EncoderSettings


class Settings(EncoderSettings):
    """CAT: BERT with a codebook after each block.

    The defaults are the paper's text where it is sufficient, else the official code.
    """

    readouts: ClassVar[tuple[str, ...]] = ("mix", "cont", "comp")
    # Not an encoder's family; the code that tells those apart is never given these settings.
    family: Literal["cat"] = "cat"  # pyright: ignore[reportIncompatibleVariableOverride]
    readout: Literal["last", "mix", "cont", "comp"] = "mix"
    codes: AtLeastOne = 1000  # of each codebook but the last (official code: 768)
    last_codes: AtLeastOne = 3152  # one for each sememe
    attention: Literal["relu", "softmax"] = "relu"  # softmax: dense weights, as a control
    score: Literal["dot", "cosine"] = "dot"  # dot: scaled by the root of the width
    # Norm of the weights, times a learnable scalar. l2: norm 1 (official code). rms: root mean
    # square 1.
    normalisation: Literal["l2", "rms"] = "l2"
    output_projection: bool = True  # without bias, after the sum over codes (paper: none)
    value_bias: bool = False  # official code: yes
    # h_mix: self-attention over both representations, with one module for all layers (official
    # code) or one for each layer; or their mean, as an ablation.
    mixing: Literal["shared", "per_layer", "mean"] = "shared"
    # Residual of h_cont and LayerNorm around the attention. Without it (paper), a state keeps its
    # own token and position only once the attention is sharp, which takes long training.
    mixing_residual: bool = False

    @model_validator(mode="after")
    def _check_first_layers(self) -> Self:
        if self.first_layers:
            raise ValueError("first_layers is for encoders without codebooks; leave it out")
        return self
