"""Device, threads, seeds and what the machine says about itself."""

import os
import platform
import random
import resource
import sys

import numpy as np
import torch

from workflow_scripts.errors import UserError


def choose_device(name: str) -> torch.device:
    """`auto` is the GPU where there is one. Raises UserError when `cuda` is asked for and missing."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise UserError("device cuda: torch finds no GPU; use device: cpu, or install the CUDA build of torch")
    if name == "mps" and not torch.backends.mps.is_available():
        raise UserError("device mps: torch finds no Apple GPU; use device: cpu")
    return torch.device(name)


def prepare(seed: int, threads: int, device: torch.device) -> None:
    """Seed every generator, set the thread count and, on the CPU, allow deterministic algorithms alone."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.set_num_threads(threads)
    if device.type == "cpu":
        torch.use_deterministic_algorithms(True)
        # Filling fresh memory only guards against reading it unset, and costs time at every allocation.
        torch.utils.deterministic.fill_uninitialized_memory = False


def cpu_name() -> str:
    """Model name of the processor, e.g. `Intel(R) Xeon(R) Platinum`."""
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as stream:
            for line in stream:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def peak_memory(device: torch.device) -> int:
    """Largest memory use of this process so far, in bytes: of the GPU's memory where it trains there."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    # Linux counts kibibytes, macOS bytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def describe(device: torch.device) -> dict:
    """Facts about the machine for run.json."""
    bit_equal = "same machine and versions" if device.type == "cpu" else "not promised: GPU kernels add in any order"
    return {
        "device": device.type,
        "device_name": torch.cuda.get_device_name(device) if device.type == "cuda" else cpu_name(),
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "bit_equality": bit_equal,
        "peak_memory_bytes": peak_memory(device),
        "versions": {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__},
    }
