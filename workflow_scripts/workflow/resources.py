"""Resources of a job on a run: time, cores, a GPU. `JobInputs.estimate_memory` gives its memory."""

from typing import Any

from workflow_scripts.provenance.run_job_spec import RunJobSpec


def estimate_run_resources(
    job_spec: RunJobSpec, device: str, gpu_option: str = "gpus"
) -> dict[str, Any]:
    """Return the resources of a search, training, evaluation or intervention; time in minutes.

    `gpu_option` is the key of config.yaml.
    """
    resources = job_spec.resources
    assert resources, "resolved from the catalogue"
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
        "threads": job_spec.spec.torch_threads,
        "gpu": gpu,
        "gres": gres,
        "slurm_extra": slurm_extra,
    }
