"""Record how a result was made: spec, digests, commit, host, versions, times, memory.

Every stage writes this record next to its result. Nothing here changes a result.
"""

import platform
import time
from typing import Any

from workflow_scripts.common.system import (
    CLOCK,
    STARTED,
    describe_cpu,
    get_utc_time,
    list_versions,
    measure_cpu_seconds,
    measure_peak_memory,
    read_commit,
)
from workflow_scripts.provenance.spec_fingerprints import Fingerprint


def make_record(
    fingerprint: Fingerprint,
    data_digest: str | dict[str, str],
    seed: int | None = None,
    precision: str | None = None,
    computed_on: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the record of a result that this process has just made.

    It has inputs, machine, precision, time and memory.

    data_digest: digest of the data of the result's task, or the digest of each input by its name.
    computed_on: the return value of `training.machine.describe_device`; None if the process did not
    load torch.
    """
    device = computed_on or describe_cpu()
    seconds = time.monotonic() - CLOCK
    return {
        "fingerprint": str(fingerprint),
        "spec": fingerprint.spec,
        "code_digest": fingerprint.code,
        "data_digest": data_digest,
        "seed": seed,
        "precision": precision,
        "started": STARTED,
        "finished": get_utc_time(),
        "seconds": seconds,
        "cpu_seconds": measure_cpu_seconds(),
        "gpu_seconds": seconds if device["device"] == "cuda" else 0.0,
        "resumed": 0,
        "peak_memory_bytes": measure_peak_memory(),
        **device,
        **read_commit(),
        "host": platform.node(),
        "platform": platform.platform(),
        "versions": list_versions(),
    }
