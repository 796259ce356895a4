"""Options of the figure neighbours."""

from pydantic import Field

from workflow_scripts.common.validation import StrictModel


class Options(StrictModel):
    """The published neighbours."""

    published: str = Field(
        pattern=r"^[^/{}]+/\{word\}/[^/{}]+/[^/{}]+$",
        description="Their cell, `<display>/{word}/<column>/<metric>`, with {word} for the word.",
    )
