"""Options of the figure attention_maps."""

from pydantic import Field

from workflow_scripts.common.validation import NonNegative, StrictModel


class Options(StrictModel):
    """The sentences, and the heads that are marked."""

    sentences: list[str] = Field(min_length=1, description="Those to show, of the analysis.")
    highlight: NonNegative = Field(
        0.1,
        description="Frame a head if its divergence from the first sentence, averaged over "
        "queries, is larger (nats).",
    )
