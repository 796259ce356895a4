"""Settings of the encoders that are pre-trained on masked words."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from workflow_scripts.common.validation import AtLeastOne, Dropout, StrictModel


class Settings(StrictModel):
    """BERT and its relatives. The defaults are CAT's baselines: BERT's base size with 4 layers."""

    # Names of the states that the model returns for each token.
    readouts: ClassVar[tuple[str, ...]] = ("last",)
    family: Literal["bert", "roberta", "distilbert"] = "bert"
    layers: AtLeastOne = 4
    heads: AtLeastOne = 12
    width: AtLeastOne = 768
    feed_forward: AtLeastOne = 3072
    dropout: Dropout = 0.1
    positions: AtLeastOne = 512
    deviation: Annotated[float, Field(gt=0, le=1)] = 0.02  # standard deviation of initial weights
    tied: bool = False  # whether the vocabulary head shares the weights of the embeddings
    # The states that a task is fine-tuned on.
    readout: Literal["last", "mix", "cont", "comp"] = "last"
    # Number of layers that are kept of a pre-trained encoder, from the first; none: all.
    first_layers: AtLeastOne | None = None
    frozen: bool = False  # whether fine-tuning leaves the encoder unchanged

    @model_validator(mode="after")
    def _check_sizes_and_readout(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"width {self.width} is not a multiple of heads {self.heads}")
        if self.first_layers and self.first_layers > self.layers:
            raise ValueError(f"first_layers {self.first_layers} is more than layers {self.layers}")
        if self.readout not in self.readouts:
            raise ValueError(
                f"readout is {self.readout}; this model has {', '.join(self.readouts)}"
            )
        return self
