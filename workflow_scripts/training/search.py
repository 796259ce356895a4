"""The candidates of a hyperparameter search: pairs of learning rate and batch size, and the best of them."""

import itertools
import math
from pathlib import Path
from typing import Any

from workflow_scripts.common.files import read_json
from workflow_scripts.tasks.settings import Search, Training
from workflow_scripts.training.state import CHOSEN, TrainingState

COLUMNS = ("learning_rate", "batch_sentences", "max_steps", "best_step", "metric", "value", "seconds")
VALIDATIONS = 2  # per pass over the training set, if the search counts passes


def list_candidates(spec: dict, settings: Training, search: Search, data: Path) -> list[Training]:
    """Return the training settings of each pair.

    If the search counts epochs, the number of steps follows from the rows of the training set. The warm-up is the same
    share of the steps for every pair.
    """
    found = []
    for batch, rate in itertools.product(search.batch_sentences, search.learning_rate):
        changes: dict[str, Any] = {"learning_rate": rate, "batch_sentences": batch}
        if search.epochs:
            rows = read_json(data / "dataset.json")["splits"]["train"]["rows"]
            steps = math.ceil(search.epochs * rows / batch)
            warmup, every = steps * settings.warmup_steps / settings.max_steps, math.ceil(rows / batch / VALIDATIONS)
            changes |= {"max_steps": steps, "warmup_steps": round(warmup), "validate_every": max(1, every)}
        found.append(settings.model_copy(update=changes))
    return found


def summarise_candidate(settings: Training, state: TrainingState) -> dict[str, Any]:
    """Return the row of search.csv of a finished training, with COLUMNS."""
    tried = settings.learning_rate, settings.batch_sentences, settings.max_steps
    best = state.best[CHOSEN]
    found = best["step"], settings.selection["metric"], best["value"], round(state.seconds, 1)
    return dict(zip(COLUMNS, (*tried, *found), strict=True))


def find_best(rows: list[dict[str, Any]]) -> int:
    """Return the position of the best row of search.csv, the first of equal ones."""
    return max(range(len(rows)), key=lambda position: rows[position]["value"])
