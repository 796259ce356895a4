"""Options of the analysis seeds_and_compounds."""

from typing import Annotated

from pydantic import Field

from workflow_scripts.common.validation import FromList, StrictModel


class Options(StrictModel):
    """The models that are compared."""

    pairs: dict[str, Annotated[tuple[str, str], FromList]] = Field(
        {}, description="Name -> [worse, better], two `series` of the runs."
    )
