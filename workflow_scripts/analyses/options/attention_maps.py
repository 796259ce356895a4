"""Options of the analysis attention_maps."""

from pydantic import Field, field_validator

from workflow_scripts.common.validation import StrictModel


class Options(StrictModel):
    """The sentences whose attention is compared."""

    sentences: list[str] = Field(
        min_length=2,
        description="Sentences of one structure, the first one from training, the last one new.",
    )

    @field_validator("sentences")
    @classmethod
    def _check_lengths(cls, sentences: list[str]) -> list[str]:
        first = len(sentences[0].split())
        for sentence in sentences:
            words = len(sentence.split())
            if words != first:
                raise ValueError(
                    f"'{sentence}' has {words} words, and '{sentences[0]}' has {first}; their maps "
                    "can be compared only if they have as many words"
                )
        return sentences
