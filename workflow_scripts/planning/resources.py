"""What a job asks a cluster for: memory, time, cores, GPUs. The rules and `plan --cluster` take it from here.

Snakemake gives `attempt`, 1 for the first: an attempt may have failed for want of memory, so the next asks for more.
"""

import math
from dataclasses import dataclass, replace
from functools import cache

from workflow_scripts.catalogue.loading import load_catalogue
from workflow_scripts.catalogue.run_specs import resolve_intervention, resolve_run, searched
from workflow_scripts.catalogue.runs import Run
from workflow_scripts.planning import sizes
from workflow_scripts.planning.step_times import checkpoint_bytes, read_step_times, seconds_per_step

# The Python process, torch and its CUDA libraries, and the two Snakemakes that a SLURM job starts around it.
BASE_GIGABYTES = 4
# Weights, gradients, Adam's two moments, the best weights, and a saved state that holds the first four once more.
COPIES_OF_WEIGHTS = 8
# Of each further process of a training on several GPUs: weights, gradients, and the two moments.
COPIES_OF_ANOTHER = 4
# Minutes to start, read the data and write the results.
OVERHEAD = 30
# Nodes differ, and validation comes on top of the measured steps. What is reckoned from sizes is an upper estimate.
SAFETY = 3
# Many clusters run jobs of up to a day sooner than longer ones. A training that needs more time goes on where it was
# stopped, as its next attempt.
LONGEST = 24 * 60
# What a shared file system writes, and a checksum reads, bytes a second. A state holds weights and Adam's two moments.
SAVED_BYTES, COPIES_IN_STATE = 1e8, 3
# Between the signal at a time limit and the end SLURM leaves 30 s (its KillWait), unless the cluster says otherwise.
KILL_WAIT = 30


@dataclass(frozen=True)
class Resources:
    """Of one attempt: host memory in MB, time in minutes, cores, GPUs, time to save in seconds."""

    mem_mb: int
    runtime: int
    threads: int = 1
    gpu: int = 0
    # Seconds before its time limit at which SLURM is to tell a training to save its state; 0: its own 30 s will do.
    save_seconds: int = 0
    # Whether time or memory was reckoned from sizes, since no run like it was measured.
    estimated: bool = False


# Processes that cut and write the sentences of large data; each takes about a GB.
PREPARING_THREADS = 8
# Of an evaluation.
LEAST = Resources(4000, 120)
# By rule, at the first attempt: minutes of one core, on weights of all sizes. Rules that are not here, and for which
# there is no function below, run where Snakemake runs.
FIXED = {"candidates": Resources(4000, 60), "analyse": Resources(4000, 60)}


@cache
def reckoned(run: Run, scale: str, device: str) -> Resources:
    """Of a training at its first attempt. `run` stands for all seeds of its variant."""
    settings, times = resolve_run(load_catalogue(), run, scale)["training"], read_step_times()
    gpus, size = settings.get("gpus", 1), checkpoint_bytes(times, run, scale)
    seconds = seconds_per_step(times, run, scale, device)
    guessed = size is None or seconds is None
    size = 4 * sizes.model_parameters(run, scale) if size is None else size
    step = sizes.run_step_seconds(run, scale, device) if seconds is None else SAFETY * seconds
    if bound := seconds_per_step(times, run, scale, "cpu"):  # what a GPU loses, the safety factor covers
        step = min(step, SAFETY * bound)
    copies = COPIES_OF_WEIGHTS + COPIES_OF_ANOTHER * (gpus - 1)
    gigabytes = gpus * (BASE_GIGABYTES + sizes.held_bytes(run.task, scale) / 1e9) + copies * size / 1e9
    minutes = OVERHEAD + step * settings["max_steps"] / 60
    # One save may have just begun when the signal comes.
    saving = 2 * COPIES_IN_STATE * size / SAVED_BYTES
    runtime = min(30 * math.ceil(minutes / 30), LONGEST)
    return Resources(
        # Whole gigabytes and half hours: nobody reads more out of an estimate.
        mem_mb=1000 * math.ceil(gigabytes),
        runtime=runtime,
        threads=settings["torch_threads"] * gpus,
        gpu=gpus if device == "cuda" else 0,
        save_seconds=min(60 * math.ceil(saving / 60), 30 * runtime) if saving > KILL_WAIT else 0,
        estimated=guessed,
    )


def training(run: Run, scale: str, device: str, attempt: int = 1) -> Resources:
    """Of a training. Time does not grow with the attempt: a run that ran out of it goes on from its saved state."""
    first = reckoned(replace(run, seed=0), scale, device)
    return replace(first, mem_mb=first.mem_mb * attempt)


def searching(run: Run, scale: str, device: str, attempt: int = 1) -> Resources:
    """Of a search: a training of each of its pairs, one after the other. One that ran out of time goes on, too."""
    catalogue = load_catalogue()
    search = resolve_run(catalogue, searched(catalogue, run, scale), scale)["search"]
    one = training(run, scale, device, attempt)
    pairs = len(search["learning_rate"]) * len(search["batch_sentences"])
    return replace(one, runtime=min(one.runtime * pairs, LONGEST))


def gres(wildcards) -> str:
    """The GPUs of a training in the words of `sbatch --gres`, for profiles/slurm-gres."""
    run = Run(wildcards.task, wildcards.method, wildcards.variant, seed=0)
    return f"gpu:{resolve_run(load_catalogue(), run, wildcards.scale)['training'].get('gpus', 1)}"


def scoring(run: Run, scale: str, device: str, attempt: int = 1, rule: str = "evaluate") -> Resources:
    """Of the evaluation of a run, or of interventions on it. It starts anew at each attempt, so that time grows too."""
    first = reckoned_scoring(replace(run, seed=0), scale, device, rule)
    return replace(first, mem_mb=first.mem_mb * attempt, runtime=first.runtime * attempt)


@cache
def reckoned_scoring(run: Run, scale: str, device: str, rule: str) -> Resources:
    """The same at its first attempt."""
    size = checkpoint_bytes(read_step_times(), run, scale)
    bytes_read = 4 * sizes.model_parameters(run, scale) if size is None else size
    seconds = sizes.run_scoring_seconds(run, scale, device)
    if rule == "intervene":
        given = resolve_intervention(load_catalogue(), run, scale)
        # Answers with words replaced, and with words pooled before some blocks in each way.
        wanted = sizes.layers(run, scale) if given["blocks"] == "all" else given["blocks"]
        blocks = len(wanted) if isinstance(wanted, list) else wanted
        seconds *= len(given["rates"]) * len(given["seeds"]) + len(given["poolings"]) * blocks
    # The file and the model made from it; the sentences are few.
    return Resources(
        mem_mb=max(LEAST.mem_mb, 1000 * round(BASE_GIGABYTES + 2 * bytes_read / 1e9)),
        runtime=min(max(LEAST.runtime, 30 * math.ceil((OVERHEAD + seconds / 60) / 30)), LONGEST),
        threads=resolve_run(load_catalogue(), run, scale)["training"]["torch_threads"],
        gpu=int(device == "cuda"),
        estimated=True,
    )


def preparation(task: str, scale: str, attempt: int = 1) -> Resources:
    """Of the preparation of large data, whose bytes nobody timed: it starts anew at each attempt."""
    held = sizes.held_bytes(task, scale) / 1e9
    megabytes = 1000 * math.ceil(BASE_GIGABYTES + PREPARING_THREADS + held / 2)
    minutes = min(OVERHEAD * math.ceil(1 + sizes.data_bytes(task, scale) / 1e9), LONGEST)
    return Resources(megabytes * attempt, minutes * attempt, PREPARING_THREADS, estimated=True)


def fixed(rule: str, attempt: int = 1) -> Resources:
    """Of a rule whose jobs are alike."""
    resources = FIXED[rule]
    return replace(resources, mem_mb=resources.mem_mb * attempt, runtime=resources.runtime * attempt)
