"""The saved state of a training, from which a killed run resumes with the same results.

Layout of a state folder (`*` is a step number):

    lock            held by the process that trains here, and names it
    log.txt         append-only: started, resumed, saved, stopped, damaged
    best-model-*.safetensors    weights of the best validation so far
    best-<split>-*.safetensors  weights of the best validation on a further split
    step-*/         one saved state: tensors.safetensors, state.json, training.csv, sha256sums

A saved state is written under another name and renamed when complete, and the one before it is
kept, so a process that dies at any instant leaves at least one that can be read. Nothing is
pickled.

The best weights stay in memory until the next save: a run that resumes from an earlier state finds
them again.
"""

import fcntl
import json
import os
import re
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_file, read_json, store_on_disk
from workflow_scripts.models.weights import list_weights, load_weights, write_tensors
from workflow_scripts.training.history import LoggedValue, read_history, write_history
from workflow_scripts.training.machine import (
    Attempt,
    RandomStates,
    get_random_states,
    set_random_states,
)

TENSORS = "tensors.safetensors"
STATE = "state.json"
HISTORY = "training.csv"
SUMS = "sha256sums"  # of the others


@dataclass(frozen=True)
class BestWeights:
    """The step of the best weights by a metric, its value there, and what decides between ties.

    The value is None if nothing was validated. sha256: of their file, once it is written.
    """

    step: int
    value: float | None
    tie: float = 0.0
    sha256: str = ""


@dataclass
class TrainingState:
    """All that a resumed run needs in addition to weights, optimiser and random generators."""

    step: int = 0
    history: list[LoggedValue] = field(default_factory=list)
    pending: dict[str, list[float]] = field(default_factory=dict)
    best: dict[str, BestWeights] = field(default_factory=dict)
    seconds: float = 0.0
    # per update, of each logging interval
    interval_seconds: list[float] = field(default_factory=list)
    # of those after the first epochs of a process
    steady_seconds: list[float] = field(default_factory=list)
    resumed: int = 0
    attempts: list[Attempt] = field(default_factory=list)


def _is_in_place(stream: IO[str]) -> bool:
    """Whether an open file still has its name: it may have been deleted meanwhile."""
    if not os.path.exists(stream.name):
        return False
    return os.path.samestat(os.fstat(stream.fileno()), os.stat(stream.name))


def _name_tensors(
    model: nn.Module, optimiser: torch.optim.Optimizer, generators: dict[str, Tensor]
) -> dict[str, Tensor]:
    """Return all tensors of a state by group and name."""
    tensors = {}
    for name, tensor in list_weights(model).items():
        tensors[f"weights/{name}"] = tensor
    for index, values in optimiser.state_dict()["state"].items():
        for name, value in values.items():
            tensors[f"optimiser/{index}/{name}"] = value
    for name, generator in generators.items():
        tensors[f"generator/{name}"] = generator
    return tensors


class StateFolder:
    """The saved states of a run with an `identity`: digests of all that decides its weights.

    `lock` lets in one process at a time.
    """

    def __init__(self, folder: Path, identity: dict[str, str]):
        self.folder = Path(folder)
        self.identity = identity
        # name of weights -> weights, on the CPU
        self.unsaved_best: dict[str, dict[str, Tensor]] = {}

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the lock of the existing folder. Raises UserError if another process has it."""
        with open(self.folder / "lock", "a+", encoding="utf-8") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                stream.seek(0)
                holder = stream.read().strip() or "unknown"
                raise UserError(
                    f"{self.folder} is in use by process {holder}; wait for it or stop it"
                ) from error
            if not _is_in_place(stream):
                raise UserError(
                    f"{self.folder}: another process has just finished this run; "
                    "call the command again"
                )
            stream.truncate(0)
            stream.write(f"{os.getpid()} on {socket.gethostname()}")
            stream.flush()
            os.fsync(stream.fileno())
            yield

    def log(self, message: str) -> None:
        """Append one line with time and process to log.txt."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        with open(self.folder / "log.txt", "a", encoding="utf-8") as stream:
            stream.write(f"{now} [{os.getpid()}] {message}\n")

    def locate_best(self, name: str, step: int) -> Path:
        """Return the file of the best weights of a name, validated at `step`.

        The name is `model`, or that of a further split.
        """
        return self.folder / f"best-{name}-{step}.safetensors"

    def list_saved_states(self) -> list[Path]:
        """List the complete saved states, newest first."""
        states = [path for path in self.folder.iterdir() if re.fullmatch(r"step-\d+", path.name)]
        return sorted(states, key=lambda path: int(path.name.removeprefix("step-")), reverse=True)

    def replace_best(
        self,
        state: TrainingState,
        model: nn.Module,
        name: str,
        value: float | None,
        tie: float = 0.0,
    ) -> None:
        """Replace the best weights of a name by a copy of the model's, in memory: `save` writes it.

        value, tie: the score of their validation, and the one that decides among equal scores.
        """
        state.best[name] = BestWeights(state.step, value, tie)
        copies = {}
        for key, tensor in list_weights(model).items():
            copies[key] = tensor.to("cpu", copy=True)
        self.unsaved_best[name] = copies

    def _write_best(self, state: TrainingState) -> None:
        """Write the best weights that are in memory, each file atomically."""
        for name, weights in self.unsaved_best.items():
            best = state.best[name]
            path = self.locate_best(name, best.step)
            part = path.with_name(f".{path.name}.part")
            write_tensors(weights, part)
            store_on_disk(part)
            state.best[name] = replace(best, sha256=hash_file(part))
            os.replace(part, path)
        self.unsaved_best = {}

    def save(
        self, state: TrainingState, model: nn.Module, optimiser: torch.optim.Optimizer
    ) -> None:
        """Write the best weights and a new saved state.

        Delete all states but the one before it, and the best weights that neither names.
        """
        self._write_best(state)
        saved = self.folder / f"step-{state.step}"
        part = self.folder / f".{saved.name}.part"
        part.mkdir()
        random_states = get_random_states()
        tensors = _name_tensors(model, optimiser, random_states.tensors)
        write_tensors(tensors, part / TENSORS)
        content = {**vars(state), **self.identity, "generators": random_states.values}
        content["best"] = {name: asdict(best) for name, best in state.best.items()}
        content["attempts"] = [asdict(attempt) for attempt in state.attempts]
        del content["history"]
        (part / STATE).write_text(json.dumps(content), encoding="utf-8")
        write_history(part / HISTORY, state.history)
        names = (TENSORS, STATE, HISTORY)
        (part / SUMS).write_text(
            "".join(f"{hash_file(part / name)}  {name}\n" for name in names), encoding="utf-8"
        )
        for name in (*names, SUMS):
            store_on_disk(part / name)
        os.rename(part, saved)
        self.log(f"saved {saved.name}")
        self._remove_old_states()

    def _remove_old_states(self) -> None:
        """Remove all states but the newest two, and the best weights that neither names."""
        newest_first = self.list_saved_states()
        for old in newest_first[2:]:
            shutil.rmtree(old, ignore_errors=True)
        wanted: set[Path] = set()
        for kept in newest_first[:2]:
            wanted.update(self._list_named_weights(read_json(kept / STATE)))
        for path in self.folder.glob("best-*.safetensors"):
            if path not in wanted:
                path.unlink(missing_ok=True)

    def _list_named_weights(self, content: dict) -> dict[Path, str]:
        """Return the weight files that a saved state names, with their sha256."""
        # absent in states of earlier versions, which are refused by code
        named = content.get("best", {}).items()
        return {self.locate_best(name, best["step"]): best["sha256"] for name, best in named}

    def load(self, model: nn.Module, optimiser: torch.optim.Optimizer) -> TrainingState:
        """Restore the newest intact state, or return a new one. Damaged states are deleted.

        Raises UserError for a state of another identity, such as another spec or other data.
        """
        for part in self.folder.glob(".*.part"):  # what a killed process was writing
            if part.is_dir():
                shutil.rmtree(part)
            else:
                part.unlink()
        for saved in self.list_saved_states():
            content = self._read_intact(saved)
            if content is None:
                self.log(f"{saved.name} is damaged: removed, trying the one before")
                shutil.rmtree(saved)
                continue
            for name, value in self.identity.items():
                if content.pop(name) != value:
                    raise UserError(
                        f"{saved / STATE} was made with another {name.removesuffix('_digest')}; "
                        f"delete {self.folder} to start again"
                    )
            state = self._restore(saved, content, model, optimiser)
            self.log(f"resumed from {saved.name}")
            return state
        self.log("started")
        return TrainingState()

    def _read_intact(self, saved: Path) -> dict | None:
        """Read a saved state; None unless its files and all best weights have their sha256."""
        try:
            sums = {}
            for line in (saved / SUMS).read_text(encoding="utf-8").splitlines():
                digest, name = line.split("  ", 1)
                sums[name] = digest
            if sums != {name: hash_file(saved / name) for name in (TENSORS, STATE, HISTORY)}:
                return None
            content = read_json(saved / STATE)
            for path, digest in self._list_named_weights(content).items():
                if hash_file(path) != digest:
                    return None
        except (OSError, ValueError):
            return None
        return content

    def _restore(
        self, saved: Path, content: dict, model: nn.Module, optimiser: torch.optim.Optimizer
    ) -> TrainingState:
        groups: dict[str, dict[str, Tensor]] = {"weights": {}, "optimiser": {}, "generator": {}}
        for name, tensor in load_file(saved / TENSORS).items():
            group, rest = name.split("/", 1)
            groups[group][rest] = tensor
        load_weights(model, groups["weights"], saved / TENSORS)
        per_parameter: dict[int, dict[str, Tensor]] = {}
        for name, tensor in groups["optimiser"].items():
            index, key = name.split("/")
            per_parameter.setdefault(int(index), {})[key] = tensor
        groups_of_optimiser = optimiser.state_dict()["param_groups"]
        optimiser.load_state_dict({"state": per_parameter, "param_groups": groups_of_optimiser})
        set_random_states(RandomStates(groups["generator"], content.pop("generators")))
        best = {name: BestWeights(**fields) for name, fields in content.pop("best", {}).items()}
        attempts = [Attempt(**fields) for fields in content.pop("attempts")]
        history = read_history(saved / HISTORY)
        state = TrainingState(**content, best=best, attempts=attempts, history=history)
        state.resumed += 1
        return state

    def remove(self) -> None:
        """Delete the state of a complete run, and the folder unless it holds other files."""
        for saved in self.list_saved_states():
            shutil.rmtree(saved)
        for path in self.folder.glob("best-*.safetensors"):
            path.unlink(missing_ok=True)
        (self.folder / "log.txt").unlink(missing_ok=True)
        (self.folder / "lock").unlink(missing_ok=True)
        with suppress(OSError):
            self.folder.rmdir()
