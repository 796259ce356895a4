"""Resources of a job on a run: memory, time, cores, a GPU.

Memory and time are set in catalogue/scales.yaml. Snakemake counts `attempt` from 1. Each further attempt asks for twice
the memory, because the one before may have run out of it.
"""

from functools import cache
from typing import Any

from workflow_scripts.config.catalogue import Run
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.specs import resolve_run


@cache
def estimate_run_resources(
    run: Run, scale: str, device: str, attempt: int = 1, gpu_option: str = "gpus"
) -> dict[str, Any]:
    """Return the resources of a search, training, evaluation or intervention, in MB and minutes.

    The time does not grow with the attempt, because a training resumes. `gpu_option` is the key of config.yaml.
    """
    asked, on_gpu = load_catalogue().scales[scale].jobs, device == "cuda"
    return {
        "mem_mb": asked.memory_of.get(run.method, asked.memory) * 2 ** (attempt - 1),
        "runtime": 60 * asked.hours,
        "threads": resolve_run(load_catalogue(), run, scale).torch_threads,
        "gpu": int(on_gpu and gpu_option == "gpus"),
        "gres": "gpu:1" if on_gpu and gpu_option == "gres" else "",
        "slurm_extra": f"--signal=TERM@{asked.save_seconds}" if asked.save_seconds else "",
    }
