"""Options of the analysis attention_maps."""

from pydantic import Field

from workflow_scripts.common.validation import StrictModel


class Options(StrictModel):
    """The sentences whose attention is compared."""

    sentences: list[str] = Field(
        min_length=2,
        description="Sentences of one structure, the first one from training, the last one new.",
    )
