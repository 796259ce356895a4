"""Device, threads and random seeds of this process."""

import platform
import random
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.system import (
    STARTED,
    describe_cpu,
    measure_cpu_seconds,
    measure_peak_memory,
    read_commit,
)

TF32_SINCE = (8, 0)  # compute capability of Ampere


def choose_device(name: str) -> torch.device:
    """Return the device; `auto` is the GPU if there is one. Raises UserError if the device is missing."""
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
    """Seed every random generator, set the number of threads and, on the CPU, require deterministic algorithms."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.set_num_threads(threads)
    if device.type == "cpu":
        # Like use_deterministic_algorithms(True), but without loading the compiler.
        torch.set_deterministic_debug_mode("error")
        # Filling new memory only guards against reading it before it is set, and costs time at every allocation.
        torch.utils.deterministic.fill_uninitialized_memory = False


def set_precision(precision: str, device: torch.device) -> None:
    """Set how this process multiplies fp32 matrices. Raises UserError for tf32 on a device that does not have it.

    bf16 is not set here: the loop uses autocast.
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


# States of all generators of a process: (torch and CUDA, as tensors; python and numpy, as JSON).
Generators = tuple[dict[str, Tensor], dict]


def get_random_states() -> Generators:
    """Return the states of this process's random generators, for CUDA of its own device."""
    tensors = {"torch": torch.get_rng_state()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        tensors["cuda"] = torch.cuda.get_rng_state()
    name, keys, *rest = np.random.get_state()
    return tensors, {"python": random.getstate(), "numpy": [name, keys.tolist(), *rest]}


def set_random_states(states: Generators) -> None:
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
    on_gpu, driver = device.type == "cuda", Path("/proc/driver/nvidia/version")
    found = (
        re.search(r"Kernel Module\s.*?(\d+\.[\d.]+)", driver.read_text())
        if on_gpu and driver.exists()
        else None
    )
    here = {
        "device": device.type,
        "driver": found and found[1],
        "threads": torch.get_num_threads(),
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
    }
    if on_gpu:
        here |= {"device_name": torch.cuda.get_device_name(device), "cuda": torch.version.cuda}
        here["bit_equality"] = "not promised: GPU kernels add in any order"
        here["peak_gpu_memory_bytes"] = torch.cuda.max_memory_allocated(device)
    return describe_cpu() | here


def count_gpu_processes() -> int | None:
    """Return the number of processes that compute on this process's GPU; None on a CPU, or if it cannot be counted."""
    if not (torch.cuda.is_available() and torch.cuda.is_initialized()):
        return None
    query = ["nvidia-smi", "--query-compute-apps=gpu_uuid,pid,name", "--format=csv,noheader"]
    try:
        answer = subprocess.run(
            query, capture_output=True, text=True, timeout=30, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_gpu_processes(
        answer, str(torch.cuda.get_device_properties(torch.cuda.current_device()).uuid)
    )


def parse_gpu_processes(answer: str, gpu: str) -> int | None:
    """Return the number of lines `<uuid of gpu>, <pid>, <name>` in the answer of nvidia-smi; None if there are none.

    The server of MPS, through which the processes compute, does not count.
    """
    count = 0
    for line in answer.splitlines():
        fields = [field.strip() for field in line.split(",", 2)]
        if (
            len(fields) == 3
            and gpu in fields[0]
            and fields[1].isdigit()
            and "mps-server" not in fields[2]
        ):
            count += 1
    return count or None


def describe_attempt(device: torch.device, step: int) -> dict[str, Any]:
    """Return the record of one training invocation, which begins after `step`. The loop adds times and memory."""
    named = ("device", "device_name", "driver", "cuda")
    here = {name: value for name, value in describe_device(device).items() if name in named}
    return {
        "host": platform.node(),
        "started": STARTED,
        **read_commit(),
        **here,
        "first_step": step + 1,
    }


def measure_usage(cpu_before: float) -> dict[str, Any]:
    """Return CPU seconds since `cpu_before` and the largest memory use of this process, on its GPU too."""
    on_gpu = torch.cuda.is_available() and torch.cuda.is_initialized()
    return {
        "cpu_seconds": measure_cpu_seconds() - cpu_before,
        "peak_memory_bytes": measure_peak_memory(),
        "peak_gpu_memory_bytes": torch.cuda.max_memory_allocated() if on_gpu else None,
    }
