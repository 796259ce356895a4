"""Answers of a model that a job has saved, so that the next one continues after it was killed.

Layout of the folder:

    identity.json                   digests of all that decides the answers
    costs.json                      what the job has cost until the last save
    answers-<sha256>.safetensors    the passes since the save before, by their names

A file is written under another name and renamed when it is whole; answers also when they are on
disk. Nothing is pickled.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from torch import Tensor

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import (
    hash_file,
    list_files,
    read_json,
    store_on_disk,
    write_json,
)
from workflow_scripts.common.system import JobCosts, measure_costs
from workflow_scripts.models.weights import write_tensors


class SavedAnswers:
    """The answers of a job with an `identity`, by the name of the pass over prompts.

    Those of a job with another identity are deleted. They are saved when `seconds` have passed
    since the save before, so that a short job saves none.

    costs_before: what earlier processes of the job have cost until their last save.
    """

    def __init__(self, folder: Path, identity: dict[str, str], seconds: float):
        self.folder = folder
        self.identity = identity
        self.seconds = seconds
        self.identity_file = folder / "identity.json"
        self.costs_file = folder / "costs.json"
        self.unfinished_file = folder / ".answers.part"
        self.answers = self._load()
        costs = read_if_whole(self.costs_file)
        self.costs_before = JobCosts(**costs) if costs else None
        self.unsaved: dict[str, Tensor] = {}
        self.last_save = time.monotonic()

    def _load(self) -> dict[str, Tensor]:
        """Read the answers that were saved; damaged files are deleted."""
        if read_if_whole(self.identity_file) != self.identity:
            self.remove()
        answers: dict[str, Tensor] = {}
        for file in self._list_files():
            if file.stem == f"answers-{hash_file(file)}":
                answers |= load_file(file)
            else:
                file.unlink()
        return answers

    def _list_files(self) -> list[Path]:
        return list_files(self.folder, "answers-*.safetensors")

    def find_or_compute(self, name: str, compute: Callable[[], Tensor]) -> Tensor:
        """Return the answers of a pass, which `compute` computes unless they were saved."""
        if name not in self.answers:
            self.answers[name] = compute()
            self.unsaved[name] = self.answers[name]
            if time.monotonic() - self.last_save >= self.seconds:
                self._save()
        return self.answers[name]

    def _save(self) -> None:
        """Write the answers that are not on disk yet."""
        self.folder.mkdir(parents=True, exist_ok=True)
        write_json(self.identity_file, self.identity)
        is_on_gpu = self.identity.get("device") == "cuda"
        costs = measure_costs(self.costs_before, is_on_gpu)
        write_json(self.costs_file, asdict(costs))
        write_tensors(self.unsaved, self.unfinished_file)
        store_on_disk(self.unfinished_file)
        name = f"answers-{hash_file(self.unfinished_file)}.safetensors"
        self.unfinished_file.replace(self.folder / name)
        self.unsaved = {}
        self.last_save = time.monotonic()

    def remove(self) -> None:
        """Delete what was saved, and the folder unless it has other files."""
        own_files = (self.unfinished_file, self.costs_file, self.identity_file)
        for file in (*self._list_files(), *own_files):
            file.unlink(missing_ok=True)
        with suppress(OSError):
            self.folder.rmdir()


def read_if_whole(file: Path) -> Any:
    """Return the content of a JSON file; None without one, or if a power cut has damaged it."""
    if not file.is_file():
        return None
    try:
        return read_json(file)
    except UserError:
        return None
