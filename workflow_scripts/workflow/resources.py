"""Resources of a job on a run: time, cores, a GPU. `JobInputs.request_memory` gives its memory."""

from typing import Any

from workflow_scripts.provenance.planned_run import PlannedRun


def estimate_run_resources(
    planned: PlannedRun, device: str, gpu_option: str = "gpus"
) -> dict[str, Any]:
    """Return the resources of a search, training, evaluation or intervention; time in minutes.

    `gpu_option` is the key of config.yaml.
    """
    resources = planned.resources
    assert resources, "planned from the catalogue"
    gpu = 0
    gres = ""
    if device == "cuda":
        if gpu_option == "gres":
            gres = "gpu:1"
        else:
            gpu = 1
    slurm_extra = ""
    if resources.save_seconds:
        slurm_extra = f"--signal=TERM@{resources.save_seconds}"
    return {
        "runtime": 60 * resources.hours,
        "threads": planned.spec.torch_threads,
        "gpu": gpu,
        "gres": gres,
        "slurm_extra": slurm_extra,
    }
