"""Options of the figure sentence_pairs."""

from pydantic import Field

from workflow_scripts.common.validation import StrictModel


class Options(StrictModel):
    """The published pairs."""

    published: str = Field(
        description="The display whose rows 1, 2, ... have the two sentences of a pair."
    )
