"""What a kind of task is: how its models are trained, loaded and scored, and how they predict.

Each kind is a package `tasks/<kind>`: `kind.py` has its class `Kind`, and `settings.py`, without
torch, its settings.
"""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa
import torch
from torch import Tensor, nn

from workflow_scripts.common.errors import UserError
from workflow_scripts.evaluation.scores import Score, UndefinedScore
from workflow_scripts.tasks.batching import ShuffledBatches, TensorBatch
from workflow_scripts.tasks.run_spec import GivenWeightsSpec, RunSpec
from workflow_scripts.tasks.settings import Evaluation

# loss(model, batch) -> (scalar loss, named parts of it, which are logged)
Loss = Callable[[Any, Any], tuple[Tensor, dict[str, Tensor]]]


class AdditiveLoss(ABC):
    """A loss that can be computed from parts of a batch, and is exactly that of the whole batch.

    Its terms are means over tokens or examples. Those of a part are divided by the numbers of the
    whole batch, so they add up to the terms of the whole batch. The loss is a function of its
    terms. If it is a weighted sum of them (`is_sum`), the losses of parts add up, too.
    """

    @property
    def is_sum(self) -> bool:
        """Whether the loss is a weighted sum of its terms."""
        return True

    @abstractmethod
    def compute_terms(self, model: Any, part: Any, whole: Any) -> dict[str, Tensor]:
        """Return the terms of a part of the batch `whole`, or of all of it: scalars by name."""

    @abstractmethod
    def combine(self, terms: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        """Return (loss, parts of it, which are logged) by the terms of a batch."""

    def __call__(self, model: nn.Module, batch: Any) -> tuple[Tensor, dict[str, Tensor]]:
        """Return (loss, parts) of a batch."""
        return self.combine(self.compute_terms(model, batch, batch))


@dataclass(frozen=True)
class ExampleLoss(AdditiveLoss):
    """A loss that is a mean over the examples of a batch, as are its parts."""

    compute: Loss

    def compute_terms(
        self, model: nn.Module, part: TensorBatch, whole: TensorBatch
    ) -> dict[str, Tensor]:
        """Return loss and parts of a part, times its share of the examples."""
        loss, parts = self.compute(model, part)
        share = part.count_rows() / whole.count_rows()
        return {name: share * value for name, value in {"loss": loss, **parts}.items()}

    def combine(self, terms: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        """Return (loss, parts)."""
        parts = dict(terms)
        loss = parts.pop("loss")
        return loss, parts


@runtime_checkable
class FinishesSteps(Protocol):
    """A model that changes something besides its parameters after each update."""

    def finish_step(self) -> None:
        """Make that change; the loop calls this after each step of the optimiser."""


@dataclass(frozen=True)
class TrainingSetup:
    """Model, batches, loss and validation of one training.

    `validate(model)` is called in eval mode without gradients and returns named values; on a
    further split, the name is `<split>_<value>`. The training settings name the value that chooses
    the best weights: greater is better. Of equal ones the lowest `tie_break_metric`, if one is
    named, is the best, and then the latest. With validation none it is not called, and may
    be None. `save_extra_files(folder)` writes further files of a checkpoint.

    capturable: whether a GPU can repeat an update as a graph. Then every size in an update follows
    from the shapes of its batch, and nothing waits for the device: no boolean index, no `nonzero`,
    no `item`.
    compilable: layers that can be compiled, each with `dynamic=True` and `fullgraph=True`.
    """

    model: nn.Module
    loss: Loss
    batches: Sequence[Any] | ShuffledBatches
    validate: Callable[[Any], dict[str, float]] | None
    save_extra_files: Callable[[Path], None] | None = None
    tie_break_metric: str | None = None
    capturable: bool = False
    compilable: Sequence[nn.Module] = ()


def average_over(values: Tensor, counted: Tensor, whole: Tensor | None = None) -> Tensor:
    """Return the mean of values [...] where counted [...] is True, or 0 if it is nowhere.

    With `whole` the sum is divided by the number of its True elements: the values are of a part of
    a batch, and `whole` has what is counted in all of it.
    `values[counted].mean()` has a size that depends on the data, for which the program would have
    to wait.
    """
    if whole is None:
        whole = counted
    return torch.where(counted, values, 0.0).sum() / whole.sum().clamp(min=1)


@dataclass(frozen=True)
class Checkpoint:
    """What a finished run has learnt, and what its predictions need.

    name: of the run. folder: weights, config.json, and vocabulary.json or tokenizer.json. spec:
    that of run.json. settings: those of its evaluation. labels: names of the classes; None if the
    task has none.
    """

    name: str
    folder: Path
    spec: RunSpec | GivenWeightsSpec
    settings: Evaluation
    labels: list[str] | None

    def load_model(self, device: str = "cpu") -> nn.Module:
        """Load the model with the weights of its best validation, in eval mode.

        Raises UserError for broken files.
        """
        model = load_kind(self.spec.kind).load_model(self)
        return model.to(device).eval()

    def predict(self, model: nn.Module, inputs: Sequence) -> list:
        """Predict from texts with a model of `load_model`, as the run's evaluation does.

        seq2seq: sentences, as tokens with a space between, to sentences. prompt: texts, for which
        the template has a place, to the next token. sentence_prediction: sentences, or pairs of
        them, to names of classes or numbers. question_answering: pairs of question and paragraph to
        answers. The newline at the end of a line of a file is no part of its text. Raises UserError
        for pre-trainings, and for an input that is no text or pair of texts as the model needs it.
        """
        if isinstance(inputs, str):
            raise UserError(f"the inputs are a text, {inputs!r:.50}; give a list of texts")
        if not len(inputs):
            return []
        kind = load_kind(self.spec.kind)
        return kind.predict(self, model, check_inputs(inputs, kind.count_texts(self)))


def check_inputs(inputs: Sequence, counts: Collection[int]) -> list[str | tuple[str, str]]:
    """Return the inputs of `predict` without the newlines at their ends.

    counts: how many texts an input may have, 1 or 2. Raises UserError for an input that is neither
    a text nor a pair of texts, or that has another number of texts.
    """
    names = " or ".join({1: "a text", 2: "a pair of texts"}[count] for count in sorted(counts))
    checked: list[str | tuple[str, str]] = []
    for number, item in enumerate(inputs):
        texts = [item] if isinstance(item, str) else item
        is_right = isinstance(texts, Sequence) and len(texts) in counts
        if not is_right or not all(isinstance(text, str) for text in texts):
            raise UserError(f"input {number} is {item!r:.50}; the model needs {names}")
        stripped = [text.removesuffix("\n").removesuffix("\r") for text in texts]
        if len(stripped) == 1:
            checked.append(stripped[0])
        else:
            checked.append((stripped[0], stripped[1]))
    return checked


@dataclass(frozen=True)
class EvaluationResult:
    """What an evaluation gives: predictions, scores, and metrics without a value.

    The scores are without the names of the run, which are those of its spec.
    """

    predictions: pa.Table
    scores: list[Score]
    undefined: list[UndefinedScore] = field(default_factory=list)


class TaskKind(ABC):
    """How models of a kind of task are loaded and scored.

    Its settings, its metrics and the keys that it reads are `KIND` in its settings.py, which a dry
    run reads. What trains a model is `set_up_training` in its training_setup.py. A change of that
    module trains the models again; a change of kind.py only scores them again.
    """

    @abstractmethod
    def load_model(self, checkpoint: Checkpoint) -> nn.Module:
        """Load the model of a finished run, on the CPU.

        Raises UserError if a file is missing or broken.
        """

    @abstractmethod
    def score(
        self,
        checkpoint: Checkpoint,
        model: Any,
        data: Path,
        device: torch.device,
        progress: str,
    ) -> EvaluationResult:
        """Evaluate a model in eval mode on `device` on every split of the settings.

        progress: see `common.progress`.
        """

    def count_texts(self, checkpoint: Checkpoint) -> Collection[int]:
        """Return how many texts an input of `predict` may have."""
        return (1,)

    def predict(self, checkpoint: Checkpoint, model: Any, inputs: Sequence) -> list:
        """Predict from one or more texts with a model in eval mode.

        Raises UserError for pre-trainings.
        """
        raise UserError(
            f"{checkpoint.folder}: a run of the kind {checkpoint.spec.kind} predicts no text; "
            "use its model"
        )


def load_kind(name: str) -> TaskKind:
    """Return the kind of task of the package `tasks/<name>`."""
    module = importlib.import_module(f"workflow_scripts.tasks.{name}.kind")
    return module.Kind()
