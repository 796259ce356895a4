"""The saved state of a training, from which a killed run resumes with the same results.

Layout of a state folder (`*` is a step number):

    lock            held by the process that trains here, and names it
    log.txt         append-only: started, resumed, saved, stopped, damaged
    best-model-*.safetensors    weights of the best validation so far; best-<split>-*: of the best on a further split
    step-*/         one saved state: tensors.safetensors, state.json, training.csv, and their sha256sums

A saved state is written under another name and renamed when complete, and the one before it is kept, so a process
that dies at any instant leaves at least one that can be read. Nothing is pickled.

The best weights stay in memory until the next save: a run that resumes from an earlier state finds them again.
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

TENSORS, STATE, HISTORY, SUMS = "tensors.safetensors", "state.json", "training.csv", "sha256sums"


@dataclass
class TrainingState:
    """All that a resumed run needs in addition to weights, optimiser and random generators."""

    step: int = 0
    history: list[tuple[int, str, float]] = field(default_factory=list)
    pending: dict[str, list[float]] = field(default_factory=dict)
    # name of weights -> step, value, tie, sha256
    best: dict[str, dict[str, Any]] = field(default_factory=dict)
    seconds: float = 0.0
    # per update, of each logging interval
    interval_seconds: list[float] = field(default_factory=list)
    # of those after the first epochs of a process
    steady_seconds: list[float] = field(default_factory=list)
    resumed: int = 0
    # each invocation, up to its last save
    attempts: list[dict[str, Any]] = field(default_factory=list)


def _flush(path: Path) -> None:
    """Wait until the file is on disk: after a power cut a rename may have survived, but not its content."""
    with open(path, "rb+") as stream:
        os.fsync(stream.fileno())


class StateFolder:
    """The saved states of a run with an `identity` (digests of spec and data). `lock` lets in one process at a time."""

    def __init__(self, folder: Path, identity: dict[str, str]):
        self.folder = Path(folder)
        self.identity = identity
        # name of weights -> weights, on the CPU
        self.unsaved_best: dict[str, dict[str, Tensor]] = {}

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the lock of the existing folder. Raises UserError if another process has it."""
        with open(self.folder / "lock", "a+") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                stream.seek(0)
                holder = stream.read().strip() or "unknown"
                raise UserError(
                    f"{self.folder} is in use by process {holder}; wait for it or stop it"
                ) from error
            if not os.path.exists(stream.name) or not os.path.samestat(
                os.fstat(stream.fileno()), os.stat(stream.name)
            ):
                raise UserError(
                    f"{self.folder}: another process has just finished this run; call the command again"
                )
            stream.truncate(0)
            stream.write(f"{os.getpid()} on {socket.gethostname()}")
            stream.flush()
            os.fsync(stream.fileno())
            yield

    def log(self, message: str) -> None:
        """Append one line with time and process to log.txt."""
        with open(self.folder / "log.txt", "a") as stream:
            stream.write(
                f"{datetime.now(UTC).isoformat(timespec='seconds')} [{os.getpid()}] {message}\n"
            )

    def locate_best(self, name: str, step: int) -> Path:
        """Return the file of the best weights of a name (`model`, or a further split), validated at `step`."""
        return self.folder / f"best-{name}-{step}.safetensors"

    def list_saved_states(self) -> list[Path]:
        """List the complete saved states, newest first."""
        found = [path for path in self.folder.iterdir() if re.fullmatch(r"step-\d+", path.name)]
        return sorted(found, key=lambda path: int(path.name.removeprefix("step-")), reverse=True)

    def keep_best(
        self,
        state: TrainingState,
        model: nn.Module,
        name: str,
        value: float | None,
        tie: float = 0.0,
    ) -> None:
        """Keep a copy of the weights as the best of a name, with what their validation gave. `save` writes them."""
        state.best[name] = {"step": state.step, "value": value, "tie": tie}
        self.unsaved_best[name] = {
            key: tensor.to("cpu", copy=True) for key, tensor in list_weights(model).items()
        }

    def _write_best(self, state: TrainingState) -> None:
        """Write the best weights that are in memory, each file atomically."""
        for name, weights in self.unsaved_best.items():
            path = self.locate_best(name, state.best[name]["step"])
            part = path.with_name(f".{path.name}.part")
            write_tensors(weights, part)
            _flush(part)
            state.best[name]["sha256"] = hash_file(part)
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
        tensors = {f"weights/{name}": tensor for name, tensor in list_weights(model).items()}
        for index, values in optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser/{index}/{name}": value for name, value in values.items()}
        generators, python_states = get_random_states()
        tensors |= {f"generator/{name}": value for name, value in generators.items()}
        write_tensors(tensors, part / TENSORS)
        content = {**vars(state), **self.identity, "generators": python_states}
        del content["history"]
        (part / STATE).write_text(json.dumps(content))
        write_history(part / HISTORY, state.history)
        names = (TENSORS, STATE, HISTORY)
        (part / SUMS).write_text("".join(f"{hash_file(part / name)}  {name}\n" for name in names))
        for name in (*names, SUMS):
            _flush(part / name)
        os.rename(part, saved)
        self.log(f"saved {saved.name}")
        states = self.list_saved_states()
        for old in states[2:]:
            shutil.rmtree(old, ignore_errors=True)
        wanted = {
            path for kept in states[:2] for path in self._named_weights(read_json(kept / STATE))
        }
        for path in self.folder.glob("best-*.safetensors"):
            if path not in wanted:
                path.unlink(missing_ok=True)

    def _named_weights(self, content: dict) -> dict[Path, str]:
        """Return the weight files that a saved state names, with their sha256."""
        # absent in states of earlier versions, which are refused by code
        named = content.get("best", {}).items()
        return {self.locate_best(name, best["step"]): best["sha256"] for name, best in named}

    def load(self, model: nn.Module, optimiser: torch.optim.Optimizer) -> TrainingState:
        """Restore the newest readable state, or return a new one. Raises UserError for another spec or other data."""
        for part in self.folder.glob(".*.part"):  # what a killed process was writing
            shutil.rmtree(part) if part.is_dir() else part.unlink()
        for saved in self.list_saved_states():
            content = self._read_intact(saved)
            if content is None:
                self.log(f"{saved.name} is damaged: removed, trying the one before")
                shutil.rmtree(saved)
                continue
            for name, value in self.identity.items():
                if content.pop(name) != value:
                    found = f"{saved / STATE} was made with another {name.removesuffix('_digest')}"
                    raise UserError(f"{found}; delete {self.folder} to start again")
            state = self._restore(saved, content, model, optimiser)
            self.log(f"resumed from {saved.name}")
            return state
        self.log("started")
        return TrainingState()

    def _read_intact(self, saved: Path) -> dict | None:
        """Read a saved state; None unless each of its files and all best weights have their sha256."""
        try:
            lines = (saved / SUMS).read_text().splitlines()
            sums = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
            if sums != {name: hash_file(saved / name) for name in (TENSORS, STATE, HISTORY)}:
                return None
            content = read_json(saved / STATE)
            whole = all(
                hash_file(path) == digest for path, digest in self._named_weights(content).items()
            )
            return content if whole else None
        except (OSError, ValueError):
            return None

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
        optimiser.load_state_dict(
            {"state": per_parameter, "param_groups": optimiser.state_dict()["param_groups"]}
        )
        set_random_states((groups["generator"], content.pop("generators")))
        state = TrainingState(**content, history=read_history(saved / HISTORY))
        state.resumed += 1
        return state

    def remove(self) -> None:
        """Delete the state of a complete run, and the folder unless it holds other files."""
        for saved in self.list_saved_states():
            shutil.rmtree(saved)
        for path in (
            *self.folder.glob("best-*.safetensors"),
            self.folder / "log.txt",
            self.folder / "lock",
        ):
            path.unlink(missing_ok=True)
        with suppress(OSError):
            self.folder.rmdir()
