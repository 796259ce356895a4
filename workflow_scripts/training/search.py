"""The candidates of a hyperparameter search: pairs of learning rate and batch size."""

import itertools
import math
from pathlib import Path
from typing import Any

from workflow_scripts.common.files import read_json
from workflow_scripts.tasks.settings import Search, Training

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


def list_candidates(settings: Training, search: Search, data: Path) -> list[Training]:
    """Return the training settings of each pair. Epochs give the steps, and warm-up is the same share of them."""
    found = []
    for batch, rate in itertools.product(search.batch_sentences, search.learning_rate):
        changes: dict[str, Any] = {"learning_rate": rate, "batch_sentences": batch}
        if search.epochs:
            rows = read_json(data / "dataset.json")["splits"]["train"]["rows"]
            steps = math.ceil(search.epochs * rows / batch)
            warmup, every = (
                steps * settings.warmup_steps / settings.max_steps,
                math.ceil(rows / batch / VALIDATIONS),
            )
            changes |= {
                "max_steps": steps,
                "warmup_steps": round(warmup),
                "validate_every": max(1, every),
            }
        found.append(settings.model_copy(update=changes))
    return found
