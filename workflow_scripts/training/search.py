"""The candidates of a hyperparameter search: pairs of learning rate and batch size."""

import importlib
import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import parse_as
from workflow_scripts.tasks.run_spec import RunSpec
from workflow_scripts.training.settings import Chosen, Search, Training

COLUMNS = (
    "learning_rate",
    "batch_sentences",
    "max_steps",
    "best_step",
    "metric",
    "value",
    "seconds",
)
VALIDATIONS = 2  # per pass over the training set, if the search counts passes


def count_examples(spec: RunSpec, data: Path, init: Path | None) -> int:
    """Return how many examples a pass over the training set has.

    Raises UserError for a kind of task that does not count them, or for data that it cannot read.
    """
    training_setup = importlib.import_module(f"workflow_scripts.tasks.{spec.kind}.training_setup")
    if not hasattr(training_setup, "count_training_examples"):
        raise UserError(
            f"{spec.task}: key 'search': tasks of the kind {spec.kind} have no epochs in a search; "
            "give the length as training.max_steps"
        )
    return training_setup.count_training_examples(spec, data, init)


def list_candidates(settings: Training, search: Search, examples: int | None) -> list[Chosen]:
    """Return the settings of each pair.

    Epochs of the search give the steps, by the number of `examples`, and warm-up is the same share
    of them. The training has a number of steps.
    """
    candidates = []
    for batch, rate in itertools.product(search.batch_sentences, search.learning_rate):
        content = {
            "learning_rate": rate,
            "batch_sentences": batch,
            **choose_lengths(settings, search.epochs, batch, examples),
        }
        candidates.append(parse_as(Chosen, content, "settings of a search", "training"))
    return candidates


def choose_lengths(
    settings: Training, epochs: float | None, batch: int, examples: int | None
) -> dict[str, Any]:
    """Return max_steps, warmup_steps and validate_every of a training with `batch` sentences."""
    if epochs is None or examples is None:
        return {
            "max_steps": settings.max_steps,
            "warmup_steps": settings.warmup_steps,
            "validate_every": settings.validate_every,
        }
    steps = math.ceil(epochs * examples / batch)
    return {
        "max_steps": steps,
        "warmup_steps": round(steps * settings.warmup_steps / settings.n_updates),
        "validate_every": max(1, math.ceil(examples / batch / VALIDATIONS)),
    }


def find_best(values: Sequence[float]) -> int:
    """Return the position of the largest value of validation, the first of equal ones."""
    return max(range(len(values)), key=lambda position: values[position])
