"""The candidates of a hyperparameter search: pairs of learning rate and batch size."""

import itertools
import math
from pathlib import Path
from typing import Any

from workflow_scripts.common.files import read_json
from workflow_scripts.common.validation import parse_as
from workflow_scripts.tasks.settings import Chosen, Search, Training

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
    """Return the settings of each pair. Epochs give the steps, and warm-up is the same share of them.

    Raises UserError if the training counts epochs: a search compares numbers of steps.
    """
    candidates = []
    for batch, rate in itertools.product(search.batch_sentences, search.learning_rate):
        lengths: dict[str, Any] = {
            "max_steps": settings.max_steps,
            "warmup_steps": settings.warmup_steps,
            "validate_every": settings.validate_every,
        }
        if search.epochs:
            rows = read_json(data / "dataset.json")["splits"]["train"]["rows"]
            steps = math.ceil(search.epochs * rows / batch)
            warmup = steps * settings.warmup_steps / settings.max_steps
            every = math.ceil(rows / batch / VALIDATIONS)
            lengths = {
                "max_steps": steps,
                "warmup_steps": round(warmup),
                "validate_every": max(1, every),
            }
        settings_of_pair = {"learning_rate": rate, "batch_sentences": batch, **lengths}
        candidates.append(parse_as(Chosen, settings_of_pair, "settings of a search", "training"))
    return candidates
