"""Settings of seq2seq tasks."""

from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from workflow_scripts.common.validation import Pattern, SplitName, StrictModel, require_unique
from workflow_scripts.tasks.settings import CrossEntropySettings, Evaluation, KindSettings
from workflow_scripts.training.settings import CHOSEN, Training, Validation


class Settings(CrossEntropySettings):
    """Cross-entropy of the next target word."""


class Decoding(StrictModel):
    """Settings of decoding, and of scoring the outputs."""

    batch_tokens: int = Field(gt=0)
    beam: int = Field(1, ge=1, description="1 is greedy.")
    max_length: int = Field(200, gt=0, description="Tokens after which decoding stops.")
    max_length_ratio: float = Field(
        0.0,
        ge=0,
        description="Tokens that each source token, the end symbol included, adds to max_length.",
    )
    joined: Literal["tokens", "words", "text"] = Field(
        "tokens",
        description="What output and reference are compared as: their tokens, the words that parts "
        "with @@ make, or text without any spaces.",
    )
    measures: dict[str, dict[str, Any]] = Field(
        {},
        description="Modules of workflow_scripts/evaluation that score outputs in addition to "
        "exact match, with options of each.",
    )
    same_word: Pattern | None = Field(
        None,
        description="Regular expression of output words that count as one and the same for "
        "structure_match.",
    )

    def get_measures(self) -> dict[str, dict[str, Any]]:
        """Return the modules that score outputs, with the options of each.

        They are in workflow_scripts/evaluation.
        """
        return self.measures


class Seq2SeqEvaluation(Decoding, Evaluation):
    """Settings of decoding the splits, and of scoring the outputs."""


class Seq2SeqValidation(Validation):
    """What chooses the best weights of a seq2seq model."""

    decoding: Decoding | None = Field(
        None,
        description="How outputs are decoded, from which the metric is computed, where a "
        "teacher-forced pass does not give it.",
    )

    @property
    def is_decoded(self) -> bool:
        """Whether the metric is computed from decoded outputs."""
        return self.decoding is not None

    def get_measures(self) -> dict[str, dict[str, Any]]:
        """Return the modules that score decoded outputs, with the options of each."""
        if self.decoding is None:
            return {}
        return self.decoding.get_measures()

    @model_serializer(mode="wrap")
    def write_decoding_as_set(self, serialise: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Return the JSON form: of `decoding` what is set, so that its defaults may grow."""
        content = serialise(self)
        content.pop("decoding", None)
        if self.decoding is not None:
            content["decoding"] = self.decoding.model_dump(mode="json", exclude_unset=True)
        return content


class Seq2SeqTraining(Training):
    """Settings of training a seq2seq model."""

    validation: Literal["none"] | Seq2SeqValidation = Field(  # pyright: ignore[reportIncompatibleVariableOverride]
        description="What chooses the best weights. `none` computes nothing and keeps the last "
        "weights."
    )
    shuffle_rows: bool = Field(
        True,
        description="Whether rows are permuted at random, by the run's seed, before they are "
        "sorted by length into batches, as in fairseq; for sequence-to-sequence tasks. Fine-tuning "
        "on prompts, sentences and questions draws new batches in each epoch, by the run's seed, "
        "whatever the lengths.",
    )
    also_keep: Annotated[list[SplitName], AfterValidator(require_unique)] = Field(
        [],
        description="Further checkpoints that are kept and scored, of sequence-to-sequence tasks: "
        "`last`, the last weights, or a split, the weights that are best on it by the metric of "
        "`validation`, at the same validations.",
    )
    compiled: bool = Field(
        False,
        description="Whether layers are compiled, on an NVIDIA GPU only. Dropout then draws other "
        "numbers; for sequence-to-sequence tasks.",
    )

    @model_validator(mode="after")
    def check_kept_splits(self) -> Self:
        """Raise ValueError for kept weights that nothing chooses, or with the name of others."""
        if CHOSEN in self.also_keep:
            raise ValueError(
                f"also_keep: '{CHOSEN}' is the name of the weights that validation chooses; "
                "rename the split"
            )
        if self.kept_splits and not self.selection:
            raise ValueError(
                "also_keep names a split, and validation none computes no metric on it"
            )
        return self

    def list_kept_checkpoints(self) -> list[str]:
        """Return the names of the checkpoints that are kept and scored besides the best one."""
        return self.also_keep

    def is_compiled(self) -> bool:
        """Return whether layers are compiled."""
        return self.compiled

    def drop_validation(self) -> Self:
        """Return these settings without validation, and without the checkpoints that it chooses."""
        return self.model_copy(update={"validation": "none", "also_keep": []})


KIND = KindSettings(
    problem=Settings,
    training=Seq2SeqTraining,
    evaluation=Seq2SeqEvaluation,
    validation_metrics=("exact_match", "log_likelihood"),
    metrics=("exact_match", "examples", "out_of_vocabulary_tokens", "structure_match"),
)
