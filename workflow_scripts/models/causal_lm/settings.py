"""Settings of the causal language models."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from workflow_scripts.common.validation import AtLeastOne, Dropout, StrictModel


class Settings(StrictModel):
    """A causal language model. The sizes apply to random models; a loaded model has its own."""

    family: Literal["gpt2", "llama", "qwen2", "gemma"] = "gpt2"
    template: str = ""  # of a prompt; {content} is replaced by the item's text
    bos: bool = False  # whether prompts and texts begin with the tokenizer's BOS
    label_space: bool = False  # whether answers are tokenised with a space before them
    layers: AtLeastOne = 4
    heads: AtLeastOne = 4
    key_value_heads: Annotated[int, Field(ge=0)] = 0  # 0: as many as heads
    width: AtLeastOne = 128
    feed_forward: AtLeastOne = 512
    dropout: Dropout = 0.1
    positions: AtLeastOne = 256

    @model_validator(mode="after")
    def _check_sizes(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"width {self.width} is not a multiple of heads {self.heads}")
        if self.key_value_heads and self.heads % self.key_value_heads:
            raise ValueError(
                f"heads {self.heads} is not a multiple of key_value_heads {self.key_value_heads}"
            )
        if self.template and self.template.count("{content}") != 1:
            raise ValueError(f"template is {self.template!r}; it must contain {{content}} once")
        return self
