"""What a job asks a cluster for: memory, time, cores, GPUs. The rules and `plan --cluster` take it from here.

Snakemake gives `attempt`, 1 for the first: an attempt may have failed for want of memory, so the next asks for more.
"""

import math
from dataclasses import dataclass, replace
from functools import cache

from workflow_scripts.catalogue import Run, load_catalogue, resolve_run
from workflow_scripts.planning.step_times import checkpoint_bytes, read_step_times, seconds_per_step

# The Python process, torch and its CUDA libraries, and the two Snakemakes that a SLURM job starts around it.
BASE_GIGABYTES = 4
# Weights, gradients, Adam's two moments, the best weights, and a saved state that holds the first four once more.
COPIES_OF_WEIGHTS = 8
# Of each further process of a training on several GPUs: weights, gradients, and the two moments.
COPIES_OF_ANOTHER = 4
# Host memory of a training whose checkpoint was never measured.
UNKNOWN_GIGABYTES = 8
# Minutes to start, read the data and write the results.
OVERHEAD = 30
# Nodes differ, and validation comes on top of the measured steps.
SAFETY = 3
# Many clusters run jobs of up to a day sooner than longer ones. A training that needs more time goes on where it was
# stopped, as its next attempt.
LONGEST = 24 * 60
# Minutes of a training whose step time was never measured.
UNKNOWN_TIME = 12 * 60


@dataclass(frozen=True)
class Resources:
    """Of one attempt: host memory in MB, time in minutes, cores, GPUs."""

    mem_mb: int
    runtime: int
    threads: int = 1
    gpu: int = 0


# By rule, at the first attempt. Rules that are not here run where Snakemake runs, for seconds.
FIXED = {"evaluate": Resources(4000, 120), "candidates": Resources(4000, 60), "analyse": Resources(4000, 60)}


@cache
def estimated(
    task: str, method: str, variant: str, scale: str, steps: int, device: str, processes: int = 1
) -> tuple[int, int]:
    """(MB, minutes), the same for every seed."""
    run, times = Run(task, method, variant, seed=0), read_step_times()
    size = checkpoint_bytes(times, run, scale)
    copies = COPIES_OF_WEIGHTS + COPIES_OF_ANOTHER * (processes - 1)
    gigabytes = processes * UNKNOWN_GIGABYTES if size is None else processes * BASE_GIGABYTES + copies * size / 1e9
    seconds = seconds_per_step(times, run, scale, device)
    # Where no GPU was measured the CPU's time is a bound: the safety factor is larger than what a GPU loses.
    bound = seconds or seconds_per_step(times, run, scale, "cpu")
    minutes = UNKNOWN_TIME if bound is None else OVERHEAD + SAFETY * bound * steps / 60
    if not seconds:
        minutes = min(minutes, UNKNOWN_TIME)
    # Whole gigabytes and half hours: nobody reads more out of an estimate.
    return 1000 * math.ceil(gigabytes), min(30 * math.ceil(minutes / 30), LONGEST)


def training(run: Run, scale: str, settings: dict, device: str, attempt: int = 1) -> Resources:
    """Of a training; `settings` is the section `training` of its spec. Time does not grow with the attempt: a run that
    ran out of it goes on from its saved state."""
    gpus = settings.get("gpus", 1)
    megabytes, minutes = estimated(run.task, run.method, run.variant, scale, settings["max_steps"], device, gpus)
    threads = settings["torch_threads"] * gpus
    return Resources(megabytes * attempt, minutes, threads, gpus if device == "cuda" else 0)


def gres(wildcards) -> str:
    """The GPUs of a training in the words of `sbatch --gres`, for profiles/slurm-gres."""
    run = Run(wildcards.task, wildcards.method, wildcards.variant, seed=0)
    return f"gpu:{resolve_run(load_catalogue(), run, wildcards.scale)['training'].get('gpus', 1)}"


def scoring(run: Run, scale: str, settings: dict, device: str, attempt: int = 1) -> Resources:
    """Of the evaluation of a run, or of interventions on it. It starts anew at each attempt, so that time grows too."""
    asked = fixed("evaluate", attempt)
    # The file and the model made from it.
    size = checkpoint_bytes(read_step_times(), run, scale) or 0
    megabytes = max(asked.mem_mb, 1000 * round(BASE_GIGABYTES + 2 * size / 1e9) * attempt)
    return replace(asked, mem_mb=megabytes, threads=settings["torch_threads"], gpu=int(device == "cuda"))


def fixed(rule: str, attempt: int = 1) -> Resources:
    """Of a rule whose jobs are alike."""
    resources = FIXED[rule]
    return replace(resources, mem_mb=resources.mem_mb * attempt, runtime=resources.runtime * attempt)
