"""The candidates of a hyperparameter search: pairs of learning rate and batch size."""

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import parse_as
from workflow_scripts.tasks.batching import ShuffledBatches
from workflow_scripts.tasks.run_spec import RunSpec
from workflow_scripts.training.run import set_up_training
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
    """Return how many examples a pass over the training set has: those that are put into batches.

    These are windows of paragraphs, of which a question can have several. Raises UserError if the
    task's batches do not have a number of examples.
    """
    batches = set_up_training(spec, data, init, torch.device("cpu")).batches
    if not isinstance(batches, ShuffledBatches):
        raise UserError(
            f"{spec.run}: batches of the kind {spec.kind} have no number of examples; "
            "take search.epochs out, and give training.max_steps"
        )
    return batches.examples


def list_candidates(settings: Training, search: Search, examples: int | None) -> list[Chosen]:
    """Return the settings of each pair.

    Epochs of the search give the steps, by the number of `examples`, and warm-up is the same share
    of them. Raises UserError if the training counts epochs: a search compares numbers of steps.
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
    if not epochs or not examples:
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
