"""Settings of the encoders that are pre-trained on masked words; in a module of their own. No torch here."""

from dataclasses import dataclass
from typing import Literal

from workflow_scripts.models.settings import check_at_least_one, check_dropout


@dataclass
class EncoderSettings:
    """BERT and its relatives. The defaults are CAT's baselines: BERT's base size with 4 layers."""

    family: Literal["bert", "roberta", "distilbert"] = "bert"
    layers: int = 4
    heads: int = 12
    width: int = 768
    feed_forward: int = 3072
    dropout: float = 0.1
    positions: int = 512
    deviation: float = 0.02  # of initial weights; BERT's, for its width
    tied: bool = False  # whether the head over the vocabulary has the weights of the embeddings
    readout: Literal["last", "mix", "cont", "comp"] = "last"  # the states that a task is fine-tuned on
    frozen: bool = False  # whether fine-tuning leaves the encoder as it is

    def __post_init__(self) -> None:
        check_at_least_one(self, "layers", "heads", "width", "feed_forward", "positions")
        if self.width % self.heads:
            raise ValueError(f"width {self.width} is not a multiple of heads {self.heads}")
        if not 0 < self.deviation <= 1:
            raise ValueError(f"deviation is {self.deviation}; it must lie in (0, 1]")
        check_dropout(self, "dropout")
        if self.readout not in self.readouts():
            raise ValueError(f"readout is {self.readout}; this model has {', '.join(self.readouts())}")

    def readouts(self) -> tuple[str, ...]:
        """Names of the states that the model gives for each token."""
        return ("last",)


@dataclass
class CatSettings(EncoderSettings):
    """CAT: BERT with a codebook behind each block. The defaults are the paper's text where it says enough, else the
    official code."""

    family: Literal["cat"] = "cat"
    readout: Literal["last", "mix", "cont", "comp"] = "mix"
    codes: int = 1000  # of each codebook but the last (official code: 768)
    last_codes: int = 3152  # one for each sememe
    attention: Literal["relu", "softmax"] = "relu"  # softmax: dense weights, as a control
    score: Literal["dot", "cosine"] = "dot"  # dot: scaled by the root of the width
    # l2: the weights have norm 1 times a learnable scalar (official code). rms: their mean square is 1 times it.
    normalisation: Literal["l2", "rms"] = "l2"
    code_dropout: float = 0.0  # of the weights of the codes (official code: 0.1)
    output_projection: bool = True  # a bias-free one behind the sum over codes (paper: none)
    value_bias: bool = False  # official code: yes
    detach_query: bool = False  # whether the codes' side leaves the block's own states alone (official code: yes)
    # How h_mix comes about: self-attention over both representations with one module for all layers (official code) or
    # one for each, or their mean, as an ablation.
    mixing: Literal["shared", "per_layer", "mean"] = "shared"
    mixing_masks_padding: bool = True  # official code: no
    # A residual of h_cont and LayerNorm around the attention. Without it (paper), a state only keeps its own token and
    # position where the attention has become sharp, which takes long training.
    mixing_residual: bool = False
    next_input: Literal["mix", "comp"] = "mix"  # what the next layer reads

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least_one(self, "codes", "last_codes")
        check_dropout(self, "code_dropout")

    def readouts(self) -> tuple[str, ...]:
        return ("mix", "cont", "comp")


# Where the settings of a model module stand.
SETTINGS = {
    "workflow_scripts.models.cat": CatSettings,
    "workflow_scripts.models.encoder": EncoderSettings,
}
