"""Options of the analysis audit."""

from typing import Annotated

from pydantic import Field

from workflow_scripts.common.validation import FromList, StrictModel


class Options(StrictModel):
    """The cells of published.csv that are compared."""

    displays: dict[str, str] = Field({}, description="Task -> the table with its numbers.")
    rates: dict[str, Annotated[float, Field(ge=0, le=1)]] = Field(
        {}, description='Prefix of columns -> rate of replaced words, such as "25%" -> 0.25.'
    )
    models: list[str] = Field([], description="Prefixes of rows.")
    versions: Annotated[tuple[str, str], FromList] = Field(
        ("CARMA", "FT"), description="The endings of the two rows that are compared."
    )
    runs: int = Field(6, ge=2, description="How many runs each printed number is from.")
    misprinted: list[Annotated[tuple[str, str, str], FromList]] = Field(
        [], description="[display, model, prefix of the rate] of cells whose CV is a misprint."
    )
