"""The resume state of a training: what a killed run needs to go on as if nothing had happened.

Layout of a state folder (`*` is a step number):

    lock            held by the process that trains here, and names it
    log.txt         append-only: started, resumed, saved, stopped, damaged
    best-*.safetensors      weights of the best validation so far; best-on-<split>-*: of that on a further split
    step-*/         one generation: tensors.safetensors, state.json, training.csv, and their sha256sums

A generation is written under another name and renamed when complete, and the one before it is kept, so a process
that dies at any instant leaves at least one that can be read. Nothing is pickled.
"""

import fcntl
import json
import os
import re
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_file, read_json
from workflow_scripts.models.weights import list_weights, load_weights, write_tensors
from workflow_scripts.training.history import read_history, write_history
from workflow_scripts.training.machine import get_random_states, set_random_states

TENSORS, FACTS, HISTORY, SUMS = "tensors.safetensors", "state.json", "training.csv", "sha256sums"


@dataclass
class TrainingState:
    """All that a resumed run needs besides weights, optimiser and random generators."""

    step: int = 0
    history: list[tuple[int, str, float]] = field(default_factory=list)
    pending: dict[str, list[float]] = field(default_factory=dict)
    best_step: int = 0
    best_value: float | None = None
    best_tie: float = 0.0
    best_sha256: str | None = None
    kept: dict[str, dict[str, Any]] = field(default_factory=dict)  # further split -> step, value, tie, sha256
    seconds: float = 0.0
    interval_seconds: list[float] = field(default_factory=list)
    resumed: int = 0
    attempts: list[dict[str, Any]] = field(default_factory=list)  # each call that worked on it, up to its last save


def _flush(path: Path) -> None:
    """Wait until the file is on disk: after a power cut a rename may have survived, but not its content."""
    with open(path, "rb+") as stream:
        os.fsync(stream.fileno())


class StateFolder:
    """Saves and loads the state of one run. `lock` lets only one process do so at a time.

    A run resumes only from a state with the same `identity` (digests of spec and data).
    """

    def __init__(self, folder: Path, identity: dict[str, str]):
        self.folder = Path(folder)
        self.identity = identity

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the lock of the existing folder. Raises UserError if another process has it."""
        with open(self.folder / "lock", "a+") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                stream.seek(0)
                holder = stream.read().strip() or "unknown"
                raise UserError(f"{self.folder} is in use by process {holder}; wait for it or stop it") from error
            if not os.path.exists(stream.name) or not os.path.samestat(os.fstat(stream.fileno()), os.stat(stream.name)):
                raise UserError(f"{self.folder}: another process has just finished this run; call the command again")
            stream.truncate(0)
            stream.write(f"{os.getpid()} on {socket.gethostname()}")
            stream.flush()
            os.fsync(stream.fileno())
            yield

    def log(self, message: str) -> None:
        """Append one line with time and process to log.txt."""
        with open(self.folder / "log.txt", "a") as stream:
            stream.write(f"{datetime.now(UTC).isoformat(timespec='seconds')} [{os.getpid()}] {message}\n")

    def locate_best(self, step: int) -> Path:
        """Return the file of the best weights, validated at `step`."""
        return self.folder / f"best-{step}.safetensors"

    def locate_kept(self, split: str, step: int) -> Path:
        """Return the file of the weights that are best on a further split, validated at `step`."""
        return self.folder / f"best-on-{split}-{step}.safetensors"

    def list_saved_states(self) -> list[Path]:
        """List the complete saved states, newest first."""
        found = {
            int(match[1]): path for path in self.folder.iterdir() if (match := re.fullmatch(r"step-(\d+)", path.name))
        }
        return [found[step] for step in sorted(found, reverse=True)]

    def keep_best(self, state: TrainingState, model: nn.Module) -> None:
        """Write the weights as those of the best validation, at `state.best_step`."""
        state.best_sha256 = self._keep(self.locate_best(state.best_step), model)

    def keep_for(self, split: str, state: TrainingState, model: nn.Module) -> None:
        """Write the weights as the best on a further split, at `state.kept[split]["step"]`."""
        found = state.kept[split]
        found["sha256"] = self._keep(self.locate_kept(split, found["step"]), model)

    def _keep(self, path: Path, model: nn.Module) -> str:
        """Write the weights atomically. Return the file's sha256."""
        part = path.with_name(f".{path.name}.part")
        write_tensors(list_weights(model), part)
        _flush(part)
        digest = hash_file(part)
        os.replace(part, path)
        return digest

    def save(self, state: TrainingState, model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        """Write a new saved state with all random generators, and delete all but the one before it."""
        generation = self.folder / f"step-{state.step}"
        part = self.folder / f".{generation.name}.part"
        part.mkdir()
        tensors = {f"weights/{name}": tensor for name, tensor in list_weights(model).items()}
        for index, values in optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser/{index}/{name}": value for name, value in values.items()}
        generators, of_python = get_random_states()
        tensors |= {f"generator/{name}": value for name, value in generators.items()}
        write_tensors(tensors, part / TENSORS)
        facts = {**vars(state), **self.identity, "generators": of_python}
        del facts["history"]
        (part / FACTS).write_text(json.dumps(facts))
        write_history(part / HISTORY, state.history)
        names = (TENSORS, FACTS, HISTORY)
        (part / SUMS).write_text("".join(f"{hash_file(part / name)}  {name}\n" for name in names))
        for name in (*names, SUMS):
            _flush(part / name)
        os.rename(part, generation)
        self.log(f"saved {generation.name}")
        self._drop_old()

    def _drop_old(self) -> None:
        """Keep two saved states and the best weights that they name."""
        generations = self.list_saved_states()
        for old in generations[2:]:
            shutil.rmtree(old, ignore_errors=True)
        wanted = {path for kept in generations[:2] for path in self._weights_of(read_json(kept / FACTS))}
        for path in self.folder.glob("best-*.safetensors"):
            if path not in wanted:
                path.unlink(missing_ok=True)

    def _weights_of(self, facts: dict) -> dict[Path, str]:
        """Return the weight files that a saved state names, with their sha256."""
        best = {self.locate_best(facts["best_step"]): facts["best_sha256"]} if facts["best_step"] else {}
        return best | {
            self.locate_kept(name, its["step"]): its["sha256"] for name, its in facts.get("kept", {}).items()
        }

    def load(self, model: nn.Module, optimiser: torch.optim.Optimizer) -> TrainingState:
        """Restore the newest readable state into model, optimiser and generators. Return State() if there is none.

        Raises UserError if the state has another spec or other data.
        """
        for part in self.folder.glob(".*.part"):  # what a killed process was writing
            shutil.rmtree(part) if part.is_dir() else part.unlink()
        for generation in self.list_saved_states():
            facts = self._intact(generation)
            if facts is None:
                self.log(f"{generation.name} is damaged: removed, trying the one before")
                shutil.rmtree(generation)
                continue
            for name, value in self.identity.items():
                if facts.pop(name) != value:
                    what = name.removesuffix("_digest")
                    raise UserError(
                        f"{generation / FACTS} was made with another {what}; delete {self.folder} to start anew"
                    )
            state = self._restore(generation, facts, model, optimiser)
            self.log(f"resumed from {generation.name}")
            return state
        self.log("started")
        return TrainingState()

    def _intact(self, generation: Path) -> dict | None:
        """Read a saved state; None unless each of its files and all best weights have their sha256."""
        try:
            lines = (generation / SUMS).read_text().splitlines()
            sums = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
            if sums != {name: hash_file(generation / name) for name in (TENSORS, FACTS, HISTORY)}:
                return None
            facts = read_json(generation / FACTS)
            whole = all(hash_file(path) == digest for path, digest in self._weights_of(facts).items())
            return facts if whole else None
        except (OSError, ValueError):
            return None

    def _restore(
        self, generation: Path, facts: dict, model: nn.Module, optimiser: torch.optim.Optimizer
    ) -> TrainingState:
        groups: dict[str, dict[str, Tensor]] = {"weights": {}, "optimiser": {}, "generator": {}}
        for name, tensor in load_file(generation / TENSORS).items():
            group, rest = name.split("/", 1)
            groups[group][rest] = tensor
        load_weights(model, groups["weights"], generation / TENSORS)
        per_parameter: dict[int, dict[str, Tensor]] = {}
        for name, tensor in groups["optimiser"].items():
            index, key = name.split("/")
            per_parameter.setdefault(int(index), {})[key] = tensor
        optimiser.load_state_dict({"state": per_parameter, "param_groups": optimiser.state_dict()["param_groups"]})
        set_random_states((groups["generator"], facts.pop("generators")))
        state = TrainingState(**facts, history=read_history(generation / HISTORY))
        state.resumed += 1
        return state

    def remove(self) -> None:
        """Delete the state of a complete run, and the folder unless it holds other files."""
        for generation in self.list_saved_states():
            shutil.rmtree(generation)
        for path in (*self.folder.glob("best-*.safetensors"), self.folder / "log.txt", self.folder / "lock"):
            path.unlink(missing_ok=True)
        with suppress(OSError):
            self.folder.rmdir()
