"""Device, threads, seeds and what the machine says about itself."""

import os
import platform
import random
import re
from pathlib import Path

import numpy as np
import torch

from workflow_scripts import provenance
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
        # What use_deterministic_algorithms(True) does, but that one also loads torch's compiler, for a second.
        torch.set_deterministic_debug_mode("error")
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


def driver() -> str | None:
    """Version of the NVIDIA driver, from the file where its kernel module says it."""
    file = Path("/proc/driver/nvidia/version")
    found = re.search(r"Kernel Module\s.*?(\d+\.[\d.]+)", file.read_text()) if file.exists() else None
    return found and found[1]


def describe(device: torch.device) -> dict:
    """Facts about the machine, for the records of a result."""
    on_gpu = device.type == "cuda"
    return {
        "device": device.type,
        "device_name": torch.cuda.get_device_name(device) if on_gpu else cpu_name(),
        "driver": driver() if on_gpu else None,
        "cuda": torch.version.cuda if on_gpu else None,
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "bit_equality": "not promised: GPU kernels add in any order" if on_gpu else "same machine and versions",
        "peak_memory_bytes": provenance.peak_memory(),
        "peak_gpu_memory_bytes": torch.cuda.max_memory_allocated(device) if on_gpu else None,
        **provenance.origin(),
    }
