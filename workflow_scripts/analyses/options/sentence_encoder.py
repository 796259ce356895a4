"""Options of the analysis sentence_encoder."""

from pydantic import Field

from workflow_scripts.common.validation import SplitName, StrictModel


class Options(StrictModel):
    """The encoder, and the data that it scores."""

    model: str = Field(
        description="Of a package in sources.yaml, of BERT's architecture, whose wheel is among "
        "the sources."
    )
    split: SplitName = "test"
