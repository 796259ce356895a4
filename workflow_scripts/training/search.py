"""The candidates of a hyperparameter search: pairs of learning rate and batch size."""

import itertools
import math
from pathlib import Path
from typing import Any

from workflow_scripts.common.files import read_json
from workflow_scripts.common.result_folders import DataFolder
from workflow_scripts.common.validation import parse_as
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


def list_candidates(settings: Training, search: Search, data: Path) -> list[Chosen]:
    """Return the settings of each pair.

    Epochs give the steps, and warm-up is the same share of them. Raises UserError if the training
    counts epochs: a search compares numbers of steps.
    """
    candidates = []
    for batch, rate in itertools.product(search.batch_sentences, search.learning_rate):
        content = {
            "learning_rate": rate,
            "batch_sentences": batch,
            **choose_lengths(settings, search.epochs, batch, data),
        }
        candidates.append(parse_as(Chosen, content, "settings of a search", "training"))
    return candidates


def choose_lengths(
    settings: Training, epochs: float | None, batch: int, data: Path
) -> dict[str, Any]:
    """Return max_steps, warmup_steps and validate_every of a training with `batch` sentences."""
    if not epochs:
        return {
            "max_steps": settings.max_steps,
            "warmup_steps": settings.warmup_steps,
            "validate_every": settings.validate_every,
        }
    rows = read_json(DataFolder(data).manifest)["splits"]["train"]["rows"]
    steps = math.ceil(epochs * rows / batch)
    return {
        "max_steps": steps,
        "warmup_steps": round(steps * settings.warmup_steps / settings.max_steps),
        "validate_every": max(1, math.ceil(rows / batch / VALIDATIONS)),
    }
