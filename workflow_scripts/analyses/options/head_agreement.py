"""Options of the analysis head_agreement."""

from typing import Annotated

from pydantic import Field, NonNegativeInt

from workflow_scripts.common.validation import FromList, SplitName, StrictModel


class CodeRun(StrictModel):
    """The run of the same task and seed whose codes are compared."""

    method: str
    variant: str


class Options(StrictModel):
    """The pairs of sentences, and the run that has codes."""

    split: SplitName = "test"
    rows: list[Annotated[tuple[NonNegativeInt, NonNegativeInt], FromList]] = Field(
        [], description="The pairs, as two rows of the split (from 0)."
    )
    codes_from: CodeRun | None = Field(
        None, description="Also compare the codes of this run in both sentences of a pair."
    )
