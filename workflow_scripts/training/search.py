"""The candidates of a hyperparameter search: pairs of learning rate and batch size, and the best of them."""

import math
from pathlib import Path
from typing import Any

from workflow_scripts.common.files import read_json
from workflow_scripts.tasks.settings import Search, Training
from workflow_scripts.training.state import TrainingState

COLUMNS = ("learning_rate", "batch_sentences", "max_steps", "best_step", "metric", "value", "seconds")
VALIDATIONS = 2  # per pass over the training set, if the search counts passes


def list_candidates(spec: dict, settings: Training, search: Search, data: Path) -> list[Training]:
    """Return the training settings of each pair.

    If the search counts epochs, the number of steps follows from the rows of the training set. The warm-up is the same
    share of the steps for every pair.
    """
    found = []
    for batch in search.batch_sentences:
        for rate in search.learning_rate:
            changes: dict[str, Any] = {"learning_rate": rate, "batch_sentences": batch}
            if search.epochs:
                rows = read_json(data / "dataset.json")["splits"]["train"]["rows"]
                steps = math.ceil(search.epochs * rows / batch)
                changes["max_steps"] = steps
                changes["warmup_steps"] = round(steps * settings.warmup_steps / settings.max_steps)
                changes["validate_every"] = max(1, math.ceil(rows / batch / VALIDATIONS))
            found.append(settings.model_copy(update=changes))
    return found


def summarise_candidate(settings: Training, state: TrainingState) -> dict[str, Any]:
    """Return the row of search.csv of a finished training, with COLUMNS."""
    return {
        "learning_rate": settings.learning_rate,
        "batch_sentences": settings.batch_sentences,
        "max_steps": settings.max_steps,
        "best_step": state.best_step,
        "metric": settings.selection["metric"],
        "value": state.best_value,
        "seconds": round(state.seconds, 1),
    }


def find_best(rows: list[dict[str, Any]]) -> int:
    """Return the position of the best row of search.csv, the first of equal ones."""
    return max(range(len(rows)), key=lambda position: rows[position]["value"])
