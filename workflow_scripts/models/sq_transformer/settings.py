"""Settings of SQ-Transformer."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from workflow_scripts.common.validation import AtLeastOne
from workflow_scripts.models.transformer.settings import Settings as TransformerSettings


class Settings(TransformerSettings):
    """SQ-Transformer. The defaults are those of the official code for SCAN."""

    attention: Literal["sal", "srl", "none"] = "sal"
    # Cross-attention of the decoder with SAL. code: the queries are the codes, and both streams get
    # the result (official code). word: each stream has its own queries (paper, A.5). systematic:
    # queries and keys are the codes.
    cross_query: Literal["code", "word", "systematic"] = "code"
    # Stream whose final output predicts the code of the next token.
    next_code_stream: Literal["word", "code"] = "word"
    # brown: p(z | codes of the context); mmi: p(z | words of the context) (Stratos 2019); none:
    # plain VQ.
    clustering: Literal["brown", "mmi", "none"] = "brown"
    source_codes: AtLeastOne = 6
    target_codes: AtLeastOne = 4
    similarity: Literal["euclidean", "cosine"] = "euclidean"
    # The code stream's gradient goes to the word embeddings, else to the codes.
    straight_through: bool = True
    ema_decay: Annotated[float, Field(ge=0, le=1)] = 0.999  # 1: codes move by their gradient alone
    codebook_gradient: bool = True  # false: codes move by the moving average alone (paper, 3.1)
    source_predictor: Literal["masked", "causal"] = "masked"
    source_predictor_layers: AtLeastOne = 3
    # cross: left context and the encoder's output (official code); causal: left context alone
    # (paper).
    target_predictor: Literal["cross", "causal"] = "cross"
    target_predictor_layers: AtLeastOne = 2

    @model_validator(mode="after")
    def _check_codes(self) -> Self:
        if self.positions != "relative":
            raise ValueError(
                "positions must be relative: "
                "a position added to a word would change the word's code"
            )
        if self.ema_decay == 1 and not self.codebook_gradient:
            raise ValueError(
                "codebook_gradient is false and ema_decay is 1: the codes would never move"
            )
        if not self.codebook_gradient and not self.straight_through:
            raise ValueError(
                "straight_through is false: it gives the codes a gradient, "
                "but codebook_gradient is false"
            )
        if self.attention == "none" and self.next_code_stream == "code":
            raise ValueError(
                "next_code_stream 'code' needs a stream of codes: set attention to sal or srl"
            )
        return self
