"""What a job asks for: memory, time, cores, a GPU.

Memory and time stand in catalogue/scales.yaml. Snakemake gives `attempt`, 1 for the first: an attempt may have failed
for want of memory, so each further one asks for twice as much.
"""

from dataclasses import dataclass
from functools import cache

from workflow_scripts.catalogue.loading import load_catalogue
from workflow_scripts.catalogue.run_specs import resolve_run
from workflow_scripts.catalogue.runs import Run


@dataclass(frozen=True)
class Resources:
    """Of one attempt: host memory in MB, time in minutes, cores, GPUs."""

    mem_mb: int
    runtime: int
    threads: int = 1
    gpu: int = 0


# By rule, at the first attempt. `prepare_large` cuts and writes sentences in processes of about a GB each, beside what
# it holds of the data. Rules that are not here, and on no run, work where Snakemake does.
FIXED = {
    "candidates": Resources(4000, 60),
    "analyse": Resources(4000, 60),
    "prepare_large": Resources(32_000, 24 * 60, threads=8),
}


def of_run(run: Run, scale: str, device: str, attempt: int = 1) -> Resources:
    """Of a search, a training, an evaluation or interventions. Time does not grow with the attempt: a training goes on
    where it was stopped."""
    asked = load_catalogue().scales[scale].jobs
    memory = asked.memory_of.get(run.method, asked.memory)
    return Resources(_doubled(memory, attempt), 60 * asked.hours, _threads(run, scale), int(device == "cuda"))


def fixed(rule: str, attempt: int = 1) -> Resources:
    """Of a rule whose jobs are alike."""
    first = FIXED[rule]
    return Resources(_doubled(first.mem_mb, attempt), first.runtime, first.threads)


def _doubled(megabytes: int, attempt: int) -> int:
    return megabytes * 2 ** (attempt - 1)


@cache
def _threads(run: Run, scale: str) -> int:
    return resolve_run(load_catalogue(), run, scale)["training"]["torch_threads"]
