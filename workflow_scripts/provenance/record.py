"""Record how a result was made: spec, digests, commit, host, versions, times, memory.

Every stage writes this record next to its result. Nothing here changes a result.
"""

import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from workflow_scripts.common.files import digest, format_json, hash_file, read_mapping, write_json
from workflow_scripts.common.system import (
    JobCosts,
    describe_cpu,
    get_utc_time,
    list_versions,
    measure_costs,
    read_commit,
)
from workflow_scripts.provenance.spec_fingerprints import Fingerprint

# Keys of a record: file name -> sha256, and the digest of all other keys.
OUTPUT_DIGESTS = "output_sha256"
OWN_DIGEST = "record_digest"


def make_record(
    fingerprint: Fingerprint,
    data_digest: str | dict[str, str],
    seed: int | None = None,
    precision: str | None = None,
    computed_on: dict[str, Any] | None = None,
    costs_before: JobCosts | None = None,
) -> dict[str, Any]:
    """Return the record of a result that this process has just made.

    It has inputs, machine, precision, time and memory.

    data_digest: digest of the data of the result's task, or the digest of each input by its name.
    computed_on: the return value of `training.machine.describe_device`; None if the process did not
    load torch. costs_before: of earlier processes of the job that this one has continued.
    """
    device = computed_on or describe_cpu()
    costs = measure_costs(costs_before, is_on_gpu=device["device"] == "cuda")
    return {
        "fingerprint": str(fingerprint),
        "spec": fingerprint.spec,
        "code_digest": fingerprint.code,
        "data_digest": data_digest,
        "seed": seed,
        "precision": precision,
        "started": costs.started,
        "finished": get_utc_time(),
        "seconds": costs.seconds,
        "cpu_seconds": costs.cpu_seconds,
        "gpu_seconds": costs.gpu_seconds,
        "resumed": costs.resumed,
        "peak_memory_bytes": costs.peak_memory_bytes,
        **device,
        **read_commit(),
        "host": platform.node(),
        "platform": platform.platform(),
        "versions": list_versions(),
    }


def add_output_digests(file: Path, outputs: Iterable[Path]) -> None:
    """Add to a record the sha256 of files next to it, which no manifest has, and its own digest.

    The manifests themselves cannot have them: they have the same bytes in every rerun.
    """
    content = read_mapping(file)
    content[OUTPUT_DIGESTS] = {output.name: hash_file(output) for output in outputs}
    write_json(file, content | {OWN_DIGEST: digest(content)})


def is_record_unchanged(file: Path) -> bool:
    """Whether a record is as `add_output_digests` wrote it. Raises UserError without a digest."""
    content = read_mapping(file, OWN_DIGEST)
    others = {key: value for key, value in content.items() if key != OWN_DIGEST}
    return content[OWN_DIGEST] == digest(others) and file.read_text("utf-8") == format_json(content)
