"""Settings of training, evaluation and search that all kinds of tasks share."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import Pattern, Seed, SplitName, StrictModel, require_unique

Beta = Annotated[float, Field(ge=0, lt=1)]
Precision = Literal["fp32", "tf32", "bf16"]
CHOSEN = "model"  # the weights that `validation` chooses
LAST = "last"  # of Training.also_keep: the weights after the last update


# Keys that only some kinds of tasks read.
ONLY_SOME = {
    "training": {
        "batch_sentences",
        "shuffle_rows",
        "also_keep",
        "gradient_checkpointing",
        "compiled",
    },
    "evaluation": {
        "beam",
        "max_length",
        "max_length_ratio",
        "joined",
        "measures",
        "match",
        "same_word",
    },
}


@dataclass(frozen=True)
class Traits:
    """What a kind of task supports.

    validation_metrics: values that may choose the best weights; greater is better. metrics: of its scores, in the order
    of their names. reads: those keys of ONLY_SOME that it reads. decoding: whether outputs are decoded, so that
    validation may score them and further checkpoints may be kept.
    """

    validation_metrics: tuple[str, ...]
    metrics: tuple[str, ...]
    reads: frozenset[str] = frozenset()
    decoding: bool = False


def pair_betas(value: Any) -> Any:
    """Return a list as a tuple, which strict validation requires, and which YAML and JSON do not have."""
    return tuple(value) if isinstance(value, list) else value


class CrossEntropySettings(StrictModel):
    """Settings of kinds of tasks whose loss is a cross-entropy of words or tokens."""

    label_smoothing: float = Field(
        0.0, ge=0, lt=1, description="Share of the probability spread over the vocabulary."
    )


class Training(StrictModel):
    """Settings of the training loop. Every value is part of the digest of a run."""

    max_steps: int | None = Field(None, gt=0, description="Optimiser steps; or give epochs.")
    epochs: int | None = Field(
        None,
        gt=0,
        description="Passes over the training set, in the place of max_steps. They count the examples that the model's "
        "tokenizer leaves.",
    )
    batch_tokens: int = Field(
        gt=0, description="Longest sequence times sentences of a batch, at most."
    )
    batch_sentences: int | None = Field(
        None, gt=0, description="Sentences of a batch, at most; none is no limit."
    )
    shuffle_rows: bool = Field(
        True,
        description="Whether rows are permuted at random, by the run's seed, before they are sorted by length into "
        "batches, as in fairseq; for sequence-to-sequence tasks. Fine-tuning on prompts, sentences and questions draws "
        "new batches in each epoch, by the run's seed, whatever the lengths.",
    )
    learning_rate: float = Field(gt=0, description="Peak learning rate.")
    schedule: Literal["inverse_square_root", "linear", "constant", "constant_then_linear"] = Field(
        "inverse_square_root",
        description="After the warm-up; linear falls to 0 at the last step, constant_then_linear "
        "(warmup-stable-decay) in the last decay_steps.",
    )
    decay_steps: int = Field(
        0, ge=0, description="Last updates, in which constant_then_linear falls to 0."
    )
    warmup_steps: int = Field(ge=0, description="Linear warm-up from 0.")
    warmup_fraction: float | None = Field(
        None,
        ge=0,
        lt=1,
        description="Warm-up as a part of all steps, in the place of warmup_steps.",
    )
    betas: Annotated[tuple[Beta, Beta], BeforeValidator(pair_betas)] = Field(
        description="Adam's decay rates of the two moments."
    )
    adam_epsilon: float = Field(1e-8, gt=0)
    weight_decay: float = Field(0.0, ge=0, description="Decoupled, on all parameters.")
    clip_norm: float = Field(0.0, ge=0, description="Gradient norm; 0 is off.")
    validate_every: Annotated[int, Field(gt=0)] | Literal["epoch"] = Field(
        description="Steps between validations; `epoch` validates at the end of each pass over the training set."
    )
    log_every: int = Field(gt=0, description="Steps averaged into one row of training.csv.")
    validation: Literal["none"] | dict[Literal["split", "metric", "decoding"], Any] = Field(
        description="What chooses the best weights: a metric on a split; greater is better. With `decoding` (keys of "
        "an evaluation) it is computed from decoded outputs, where a teacher-forced pass does not give it. `none` "
        "computes nothing and keeps the last weights."
    )
    also_keep: Annotated[list[SplitName], AfterValidator(require_unique)] = Field(
        [],
        description="Further checkpoints that are kept and scored, of sequence-to-sequence tasks: `last`, the last "
        "weights, or a split, the weights that are best on it by the metric of `validation`, at the same validations.",
    )
    precision: Precision = Field(
        "fp32",
        description="Of updates: fp32; tf32, in which an NVIDIA GPU rounds the factors of matrix products to 10 bits; "
        "or bf16, which is autocast over fp32 weights.",
    )
    compiled: bool = Field(
        False,
        description="Whether layers are compiled, on an NVIDIA GPU only. Dropout then draws other numbers; for "
        "sequence-to-sequence tasks.",
    )
    gradient_checkpointing: bool = Field(
        False,
        description="Store only the inputs of blocks and recompute the rest in the backward pass; for prompts and "
        "encoders.",
    )
    torch_threads: int = Field(
        ge=1,
        le=4096,
        description="Threads of one training; part of the spec since sums depend on it.",
    )

    @model_validator(mode="after")
    def check_length(self) -> Self:
        """Raise ValueError unless there is one of max_steps and epochs."""
        if (self.max_steps is None) == (self.epochs is None):
            raise ValueError(
                f"max_steps is {self.max_steps} and epochs {self.epochs}; give one of the two"
            )
        return self

    @model_validator(mode="after")
    def check_decay(self) -> Self:
        """Raise ValueError unless decay_steps fits the schedule."""
        if (self.schedule == "constant_then_linear") != bool(self.decay_steps):
            raise ValueError(
                f"schedule is {self.schedule} and decay_steps {self.decay_steps}; give decay_steps with "
                "constant_then_linear, and only with it"
            )
        if self.max_steps is not None and self.decay_steps > self.max_steps:
            raise ValueError(
                f"decay_steps is {self.decay_steps}, more than max_steps {self.max_steps}"
            )
        return self

    @model_validator(mode="after")
    def check_kept_splits(self) -> Self:
        """Raise ValueError if weights are to be chosen on a split without a validation, or by a key of a wrong type."""
        for key, kind in {"split": str, "metric": str, "decoding": dict}.items():
            if not isinstance(self.selection.get(key, kind()), kind):
                raise ValueError(
                    f"validation.{key} is {self.selection[key]!r}; it must be a {kind.__name__}"
                )
        if CHOSEN in self.also_keep:
            raise ValueError(
                f"also_keep: '{CHOSEN}' is the name of the weights that validation chooses; rename the split"
            )
        if self.kept_splits and not self.selection:
            raise ValueError(
                "also_keep names a split, and validation none computes no metric on it"
            )
        return self

    def count_steps(self, batches: int) -> "Training":
        """Return these settings in steps, if an epoch has `batches`: with max_steps, and validate_every as a number.

        Raises UserError if decay_steps is more than the steps.
        """
        steps = self.max_steps if self.epochs is None else self.epochs * batches
        every = batches if self.validate_every == "epoch" else self.validate_every
        if self.decay_steps > steps:
            what = f"training.decay_steps is {self.decay_steps}, more than the {steps} steps of {self.epochs} epochs"
            raise UserError(f"{what}; lower it")
        return self.model_copy(update={"max_steps": steps, "epochs": None, "validate_every": every})

    @property
    def selection(self) -> dict[str, Any]:
        """The metric and the split of `validation`; empty if it is none."""
        return {} if self.validation == "none" else dict(self.validation)

    @property
    def kept_splits(self) -> list[str]:
        """Splits whose best weights are kept in addition to those that `validation` chooses."""
        return [name for name in self.also_keep if name != LAST]

    @property
    def warmup(self) -> int:
        """Number of warm-up steps; the number of all steps must be known."""
        if self.warmup_fraction is None:
            return self.warmup_steps
        assert self.max_steps is not None, "count_steps has not been called"
        return round(self.warmup_fraction * self.max_steps)


class Chosen(StrictModel):
    """What a search has chosen: settings of a training."""

    learning_rate: float = Field(gt=0)
    batch_sentences: int = Field(gt=0)
    max_steps: int = Field(ge=0)
    warmup_steps: int = Field(ge=0)
    validate_every: int = Field(gt=0)


class Evaluation(StrictModel):
    """Settings of scoring a run, of all kinds of tasks."""

    splits: Annotated[list[SplitName], AfterValidator(require_unique)] = Field(min_length=1)
    beam: int = Field(1, ge=1, description="1 is greedy.")
    max_length: int = Field(200, gt=0, description="Tokens after which decoding stops.")
    max_length_ratio: float = Field(
        0.0,
        ge=0,
        description="Tokens that each source token, the end symbol included, adds to max_length.",
    )
    batch_tokens: int = Field(gt=0)
    joined: Literal["tokens", "words", "text"] = Field(
        "tokens",
        description="What output and reference are compared as: their tokens, the words that parts with @@ make, or "
        "text without any spaces.",
    )
    measures: dict[str, dict[str, Any]] = Field(
        {},
        description="Modules of workflow_scripts/evaluation that score outputs in addition to exact match, with "
        "options of each.",
    )
    match: Literal["token", "text"] = Field(
        "token",
        description="A prompt's answer must be this very token, or the same text but for case and spaces.",
    )
    same_word: Pattern | None = Field(
        None,
        description="Regular expression of output words that count as one and the same for structure_match.",
    )


class Search(StrictModel):
    """Learning rates and batch sizes to try, in all combinations, before a variant is trained; none: no search."""

    seed: Seed = Field(1, description="Of the trainings of the search; best none of the runs' own.")
    learning_rate: list[Annotated[float, Field(gt=0)]] = []
    batch_sentences: list[Annotated[int, Field(gt=0)]] = []
    epochs: float | None = Field(
        None,
        gt=0,
        description="Passes over the training set, whatever the batch size; none: training.max_steps.",
    )

    @model_validator(mode="after")
    def check_pairs(self) -> Self:
        """Raise ValueError if only one of the two lists is given."""
        if bool(self.learning_rate) != bool(self.batch_sentences):
            raise ValueError(
                "learning_rate and batch_sentences are tried each with each: give both, or neither"
            )
        return self

    def count_pairs(self) -> int:
        """Return the number of trainings."""
        return len(self.learning_rate) * len(self.batch_sentences)
