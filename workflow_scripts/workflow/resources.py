"""What a job asks for: memory, time, cores, a GPU.

Memory and time stand in catalogue/scales.yaml. Snakemake gives `attempt`, 1 for the first: an attempt may have failed
for want of memory, so each further one asks for twice as much.
"""

from dataclasses import dataclass
from functools import cache

from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.run_specs import resolve_run
from workflow_scripts.config.runs import Run


@dataclass(frozen=True)
class Resources:
    """Of one attempt: host memory in MB, time in minutes, cores, a GPU by --gpus or by --gres, and what else sbatch is
    told."""

    mem_mb: int
    runtime: int
    threads: int = 1
    gpu: int = 0
    gres: str = ""
    slurm_extra: str = ""


# By rule, at the first attempt. `prepare_large` cuts and writes sentences in processes of about a GB each, beside what
# it holds of the data. Rules that are not here, and on no run, work where Snakemake does.
FIXED = {
    "candidates": Resources(4000, 60),
    "analyse": Resources(4000, 60),
    "prepare_large": Resources(32_000, 24 * 60, threads=8),
}


@cache
def of_run(run: Run, scale: str, device: str, attempt: int = 1, gpu_option: str = "gpus") -> Resources:
    """Of a search, a training, an evaluation or interventions. Time does not grow with the attempt: a training goes on
    where it was stopped. `gpu_option` is config.yaml's."""
    asked, on_gpu = load_catalogue().scales[scale].jobs, device == "cuda"
    return Resources(
        _doubled(asked.memory_of.get(run.method, asked.memory), attempt),
        60 * asked.hours,
        _threads(run, scale),
        gpu=int(on_gpu and gpu_option == "gpus"),
        gres="gpu:1" if on_gpu and gpu_option == "gres" else "",
        slurm_extra=f"--signal=TERM@{asked.save_seconds}" if asked.save_seconds else "",
    )


def fixed(rule: str, attempt: int = 1) -> Resources:
    """Of a rule whose jobs are alike."""
    first = FIXED[rule]
    return Resources(_doubled(first.mem_mb, attempt), first.runtime, first.threads)


def _doubled(megabytes: int, attempt: int) -> int:
    return megabytes * 2 ** (attempt - 1)


@cache
def _threads(run: Run, scale: str) -> int:
    return resolve_run(load_catalogue(), run, scale)["training"]["torch_threads"]
