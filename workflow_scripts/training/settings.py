"""Settings of a training and of the hyperparameter search before it, without torch."""

from typing import Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    model_validator,
)

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import Seed, StrictModel

Beta = Annotated[float, Field(ge=0, lt=1)]
Precision = Literal["fp32", "tf32", "bf16"]
CHOSEN = "model"  # the weights that `validation` chooses
LAST = "last"  # of the kept checkpoints: the weights after the last update


def pair_betas(value: Any) -> Any:
    """Return a list as a tuple.

    Strict validation requires it, and YAML and JSON do not have it.
    """
    if isinstance(value, list):
        return tuple(value)
    return value


class Validation(StrictModel):
    """What chooses the best weights of a training: a metric on a split; greater is better."""

    split: str = Field(description="Split of the data.")
    metric: str = Field(description="One that the validation of the kind of task computes.")

    @property
    def is_decoded(self) -> bool:
        """Whether the metric is computed from decoded outputs."""
        return False

    def get_measures(self) -> dict[str, dict[str, Any]]:
        """Return the modules that score decoded outputs, with the options of each.

        They are in workflow_scripts/evaluation.
        """
        return {}


class Training(StrictModel):
    """Settings of the training loop. Every value is part of the digest of a run.

    A kind of task that reads more has a subclass of it.
    """

    max_steps: int | None = Field(None, gt=0, description="Optimiser steps; or give epochs.")
    epochs: int | None = Field(
        None,
        gt=0,
        description="Passes over the training set, in the place of max_steps. They count the "
        "examples that the model's tokenizer leaves.",
    )
    batch_tokens: int = Field(
        gt=0, description="Longest sequence times sentences of a batch, at most."
    )
    accumulate: int = Field(
        1,
        gt=0,
        description="Parts of a batch, which are computed one after the other to save memory. Loss "
        "and gradients are those of the whole batch. Losses for which that cannot be are refused.",
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
        description="Steps between validations; `epoch` validates at the end of each pass over the "
        "training set."
    )
    log_every: int = Field(gt=0, description="Steps averaged into one row of training.csv.")
    validation: Literal["none"] | Validation = Field(
        description="What chooses the best weights. `none` computes nothing and keeps the last "
        "weights."
    )
    precision: Precision = Field(
        "fp32",
        description="Of updates: fp32; tf32, in which an NVIDIA GPU rounds the factors of matrix "
        "products to 10 bits; or bf16, which is autocast over fp32 weights.",
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
                f"schedule is {self.schedule} and decay_steps {self.decay_steps}; give decay_steps "
                "with constant_then_linear, and only with it"
            )
        if self.max_steps is not None and self.decay_steps > self.max_steps:
            raise ValueError(
                f"decay_steps is {self.decay_steps}, more than max_steps {self.max_steps}"
            )
        return self

    def list_kept_checkpoints(self) -> list[str]:
        """Return the names of the checkpoints that are kept and scored besides the best one."""
        return []

    def is_compiled(self) -> bool:
        """Return whether layers are compiled."""
        return False

    def drop_validation(self) -> Self:
        """Return these settings without validation."""
        return self.model_copy(update={"validation": "none"})

    def use_chosen(self, result: "Chosen") -> Self:
        """Return these settings with the result of a search.

        Keys that the kind of task does not read are left out.
        """
        fields = type(self).model_fields
        update = {}
        for key, value in result.model_dump().items():
            if key in fields:
                update[key] = value
        return self.model_copy(update=update)

    def count_steps(self, batches: int) -> Self:
        """Return these settings in steps, if an epoch has `batches`.

        They have max_steps, and validate_every as a number. Raises UserError if decay_steps is more
        than the steps.
        """
        if self.epochs is None:
            steps = self.n_updates
        else:
            steps = self.epochs * batches
        validate_every = self.validate_every
        if validate_every == "epoch":
            validate_every = batches
        if self.decay_steps > steps:
            raise UserError(
                f"training.decay_steps is {self.decay_steps}, more than the {steps} steps of "
                f"{self.epochs} epochs; lower it"
            )
        update = {"max_steps": steps, "epochs": None, "validate_every": validate_every}
        return self.model_copy(update=update)

    @property
    def n_updates(self) -> int:
        """Number of updates; `count_steps` must have been called."""
        assert self.max_steps is not None, "count_steps has not been called"
        return self.max_steps

    @property
    def validation_interval(self) -> int:
        """Steps between validations; `count_steps` must have been called."""
        assert self.validate_every != "epoch", "count_steps has not been called"
        return self.validate_every

    @property
    def selection(self) -> Validation | None:
        """The metric and the split of `validation`; None if it is none."""
        if self.validation == "none":
            return None
        return self.validation

    @property
    def kept_splits(self) -> list[str]:
        """Splits whose best weights are kept in addition to those that `validation` chooses."""
        return [name for name in self.list_kept_checkpoints() if name != LAST]

    @property
    def warmup(self) -> int:
        """Number of warm-up steps; the number of all steps must be known."""
        if self.warmup_fraction is None:
            return self.warmup_steps
        return round(self.warmup_fraction * self.n_updates)


class TextTraining(Training):
    """Settings of training on texts, of which a batch may have a fixed number."""

    batch_sentences: int | None = Field(
        None, gt=0, description="Sentences of a batch, at most; none is no limit."
    )


class RecomputingTraining(TextTraining):
    """Settings of training large models, which may recompute states to save memory."""

    gradient_checkpointing: bool = Field(
        False,
        description="Store only the inputs of blocks and recompute the rest in the backward pass; "
        "for prompts and encoders.",
    )


class Chosen(StrictModel):
    """What a search has chosen: settings of a training."""

    learning_rate: float = Field(gt=0)
    batch_sentences: int = Field(gt=0)
    max_steps: int = Field(ge=0)
    warmup_steps: int = Field(ge=0)
    validate_every: int = Field(gt=0)


class Search(StrictModel):
    """Learning rates and batch sizes to try before a variant is trained; none: no search."""

    seed: Seed = Field(1, description="Of the trainings of the search; best none of the runs' own.")
    learning_rate: list[Annotated[float, Field(gt=0)]] = []
    batch_sentences: list[Annotated[int, Field(gt=0)]] = []
    epochs: float | None = Field(
        None,
        gt=0,
        description="Passes over the training set, of questions over their windows, whatever the "
        "batch size; for sentence_prediction and question_answering. none: training.max_steps.",
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
