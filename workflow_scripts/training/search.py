"""The trainings of a hyperparameter search: pairs of learning rate and batch size, and the best of them."""

import math
from pathlib import Path
from typing import Any

import torch

from workflow_scripts.common.files import read_json
from workflow_scripts.common.progress import Reporter
from workflow_scripts.tasks.settings import Search, Training
from workflow_scripts.training.run import train_run
from workflow_scripts.training.state import StateFolder

COLUMNS = ("learning_rate", "batch_sentences", "max_steps", "best_step", "metric", "value", "seconds")
VALIDATIONS = 2  # in a pass over the training set, where the search counts these


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


def train_candidate(
    spec: dict[str, Any],
    settings: Training,
    data: Path,
    init: Path | None,
    device: torch.device,
    folder: StateFolder,
    reporter: Reporter,
    save_every: float,
) -> dict[str, Any]:
    """Train one pair and return its row of search.csv, with COLUMNS. Raises as `training.run.train_run` does."""
    _, state = train_run(spec, settings, data, init, device, folder, reporter, save_every)
    return {
        "learning_rate": settings.learning_rate,
        "batch_sentences": settings.batch_sentences,
        "max_steps": settings.max_steps,
        "best_step": state.best_step,
        "metric": settings.validation["metric"],
        "value": state.best_value,
        "seconds": round(state.seconds, 1),
    }


def find_best(rows: list[dict[str, Any]]) -> int:
    """Return the position of the best row of search.csv, the first of equal ones."""
    return max(range(len(rows)), key=lambda position: rows[position]["value"])
