"""Device, threads and random seeds of this process."""

import platform
import random
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.system import (
    STARTED,
    describe_cpu,
    read_commit,
)

TF32_SINCE = (8, 0)  # compute capability of Ampere


def choose_device(name: str) -> torch.device:
    """Return the device; `auto` is the GPU if there is one.

    Raises UserError if the device is missing.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise UserError(
            "device cuda: torch finds no GPU; use device: cpu, or install the CUDA build of torch"
        )
    if name == "mps" and not torch.backends.mps.is_available():
        raise UserError("device mps: torch finds no Apple GPU; use device: cpu")
    return torch.device(name)


def set_seed_and_threads(seed: int, threads: int, device: torch.device) -> None:
    """Seed every random generator, and set the number of threads.

    On the CPU, deterministic algorithms are required.
    """
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.set_num_threads(threads)
    if device.type == "cpu":
        # Like use_deterministic_algorithms(True), but without loading the compiler.
        torch.set_deterministic_debug_mode("error")
        # Filling new memory only guards against reading it before it is set, and costs time at
        # every allocation.
        torch.utils.deterministic.fill_uninitialized_memory = False  # pyright: ignore


def set_precision(precision: str, device: torch.device) -> None:
    """Set how this process multiplies fp32 matrices.

    Raises UserError for tf32 on a device that does not have it. bf16 is not set here: the loop uses
    autocast.
    """
    if precision == "tf32" and device.type != "cuda":
        raise UserError(f"precision tf32: a {device.type} device has no TF32; use precision: fp32")
    if precision == "tf32" and torch.cuda.get_device_capability(device) < TF32_SINCE:
        name = torch.cuda.get_device_name(device)
        raise UserError(
            f"precision tf32: {name} has no TF32, which began with Ampere; use precision: fp32"
        )
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")


@contextmanager
def compute_in_fp32() -> Iterator[None]:
    """Multiply fp32 matrices exactly in this block, whatever the precision of updates is."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


class RandomStates(NamedTuple):
    """States of all random generators of a process.

    tensors: those of torch and CUDA. values: those of python and numpy, as JSON.
    """

    tensors: dict[str, Tensor]
    values: dict[str, Any]


def get_random_states() -> RandomStates:
    """Return the states of this process's random generators, for CUDA of its own device."""
    tensors = {"torch": torch.get_rng_state()}
    if is_using_gpu():
        tensors["cuda"] = torch.cuda.get_rng_state()
    state = np.random.get_state()
    assert isinstance(state, tuple), "as it is by default"
    name, keys, *rest = state
    values = {"python": random.getstate(), "numpy": [name, keys.tolist(), *rest]}
    return RandomStates(tensors, values)


def set_random_states(states: RandomStates) -> None:
    """Restore the random generators to the return value of `get_random_states`."""
    tensors, values = states
    torch.set_rng_state(tensors["torch"])
    if "cuda" in tensors:
        torch.cuda.set_rng_state(tensors["cuda"])
    version, internal, gauss = values["python"]
    random.setstate((version, tuple(internal), gauss))
    name, keys, *rest = values["numpy"]
    np.random.set_state((name, np.array(keys, np.uint32), *rest))


def describe_device(device: torch.device) -> dict[str, Any]:
    """Describe this process and its device for `make_record`."""
    record = describe_cpu()
    record["device"] = device.type
    record["driver"] = None
    record["threads"] = torch.get_num_threads()
    record["deterministic_algorithms"] = torch.are_deterministic_algorithms_enabled()
    if device.type == "cuda":
        record["driver"] = read_driver_version()
        record["device_name"] = torch.cuda.get_device_name(device)
        record["cuda"] = torch.version.cuda
        record["bit_equality"] = "not promised: GPU kernels add in any order"
        record["peak_gpu_memory_bytes"] = torch.cuda.max_memory_allocated(device)
    return record


def read_driver_version() -> str | None:
    """Return the version of NVIDIA's driver; None if it is not where Linux has it."""
    file = Path("/proc/driver/nvidia/version")
    if not file.exists():
        return None
    version = re.search(r"Kernel Module\s.*?(\d+\.[\d.]+)", file.read_text(encoding="utf-8"))
    return version and version[1]


def is_using_gpu() -> bool:
    """Return whether this process has used its NVIDIA GPU."""
    return torch.cuda.is_available() and torch.cuda.is_initialized()


def count_gpu_processes() -> int | None:
    """Return the number of processes that compute on this process's GPU.

    None on a CPU, or if it cannot be counted.
    """
    if not is_using_gpu():
        return None
    query = ["nvidia-smi", "--query-compute-apps=gpu_uuid,pid,name", "--format=csv,noheader"]
    try:
        answer = subprocess.run(
            query,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=30,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    gpu = torch.cuda.get_device_properties(torch.cuda.current_device())
    return parse_gpu_processes(answer, str(gpu.uuid))


def parse_gpu_processes(answer: str, gpu: str) -> int | None:
    """Return the number of lines `<uuid of gpu>, <pid>, <name>` in the answer of nvidia-smi.

    None if there are none. The server of MPS, through which the processes compute, does not count.
    """
    count = 0
    for line in answer.splitlines():
        fields = [field.strip() for field in line.split(",", 2)]
        if len(fields) != 3:
            continue
        uuid, process, name = fields
        if gpu in uuid and process.isdigit() and "mps-server" not in name:
            count += 1
    return count or None


@dataclass
class Attempt:
    """One process that trained a run, from its first update to its last save.

    The commit, and whether the code differs from it, are None if they are unknown. Memory and
    processes of the GPU are None on a CPU. Times and memory are those of the last save.
    """

    host: str
    started: str
    commit: str | None
    dirty: bool | None
    device: str
    device_name: str
    driver: str | None
    cuda: str | None
    first_step: int
    last_step: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_memory_bytes: int = 0
    peak_gpu_memory_bytes: int | None = None
    gpu_processes: int | None = None


def start_attempt(device: torch.device, step: int) -> Attempt:
    """Return the record of this process, which trains after update `step`."""
    machine = describe_device(device)
    code = read_commit()
    return Attempt(
        host=platform.node(),
        started=STARTED,
        commit=code["commit"],
        dirty=code["dirty"],
        device=machine["device"],
        device_name=machine["device_name"],
        driver=machine["driver"],
        cuda=machine["cuda"],
        first_step=step + 1,
    )


def measure_gpu_memory() -> int | None:
    """Return the largest memory use of this process on its GPU, in bytes; None on a CPU."""
    if not is_using_gpu():
        return None
    return torch.cuda.max_memory_allocated()
