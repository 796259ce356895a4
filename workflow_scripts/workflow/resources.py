"""Resources of a job on a run: memory, time, cores, a GPU.

Snakemake counts `attempt` from 1. Each further attempt asks for twice the memory, because the one
before may have run out of it.
"""

from typing import Any

from workflow_scripts.provenance.run_job_spec import RunJobSpec


def estimate_run_resources(
    job_spec: RunJobSpec, device: str, attempt: int = 1, gpu_option: str = "gpus"
) -> dict[str, Any]:
    """Return the resources of a search, training, evaluation or intervention, in MB and minutes.

    The time does not grow with the attempt, because a training resumes. `gpu_option` is the key of
    config.yaml.
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
        "mem_mb": resources.memory * 2 ** (attempt - 1),
        "runtime": 60 * resources.hours,
        "threads": job_spec.spec.torch_threads,
        "gpu": gpu,
        "gres": gres,
        "slurm_extra": slurm_extra,
    }
