"""Where and from what a result was made: settings, digests, commit, host, versions, time, memory. The same record lies
beside every result, and nothing here can change one."""

import os
import platform
import time
from typing import Any

from workflow_scripts.common.system import CLOCK, STARTED, commit, cpu_name, cpu_seconds, now, peak_memory, versions
from workflow_scripts.provenance.fingerprints import Facts

FIELDS = (
    # from what
    *("facts", "spec", "code_digest", "data_digest", "seed", "commit", "dirty", "versions"),
    # where and how
    *("host", "platform", "device", "device_name", "driver", "cuda", "cpu", "cores", "threads"),
    *("precision", "deterministic_algorithms", "bit_equality"),
    # when and at what cost
    *("started", "finished", "seconds", "cpu_seconds", "gpu_seconds", "resumed"),
    *("peak_memory_bytes", "peak_gpu_memory_bytes"),
)


def make_record(
    facts: Facts,
    data_digest: str | dict[str, str],
    seed: int | None = None,
    precision: str | None = None,
    computed_on: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """FIELDS of a result that this command has just made; times and memory are of its process.

    data_digest: of the data of the one task that it is made from, or by name of each thing that it is made from.
    computed_on: what `training.machine.describe` returns; None for what is made without torch, on the CPU.
    """
    where, seconds = computed_on or without_torch(), time.monotonic() - CLOCK
    return {
        "facts": str(facts),
        "spec": facts.given,
        "code_digest": facts.code,
        "data_digest": data_digest,
        "seed": seed,
        "precision": precision,
        "started": STARTED,
        "finished": now(),
        "seconds": seconds,
        "cpu_seconds": cpu_seconds(),
        "gpu_seconds": seconds if where["device"] == "cuda" else 0.0,
        "resumed": 0,
        "peak_memory_bytes": peak_memory(),
        **where,
        **origin(),
    }


def without_torch() -> dict[str, Any]:
    """What `training.machine.describe` says, of a command that does not load torch."""
    return {
        "device": "cpu",
        "device_name": cpu_name(),
        "driver": None,
        "cuda": None,
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "threads": None,
        "deterministic_algorithms": None,
        "bit_equality": "same machine and versions",
        "peak_gpu_memory_bytes": None,
    }


def origin() -> dict[str, Any]:
    """The commit (None outside a git checkout), whether the code differs from it, host and versions."""
    return {**commit(), "host": platform.node(), "platform": platform.platform(), "versions": versions()}
