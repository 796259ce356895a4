"""Options of the analysis examples."""

from typing import Annotated

from pydantic import Field

from workflow_scripts.common.validation import FromList, StrictModel


class Options(StrictModel):
    """The pairs that are looked up."""

    items: dict[str, Annotated[tuple[str, str], FromList]] = Field(
        {}, description="Name -> [first, second]; case, spaces and punctuation are ignored."
    )
