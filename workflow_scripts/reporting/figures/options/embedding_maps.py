"""Options of the figure embedding_maps."""

from pydantic import Field, PositiveInt

from workflow_scripts.common.validation import StrictModel


class Options(StrictModel):
    """The labels, trees and panels."""

    label: list[str] | None = Field(
        None, description="Words to label, the most important first; without it all of them."
    )
    columns: PositiveInt = 2  # panels next to each other
    codes: bool = True  # join the words of one code by a thin tree
