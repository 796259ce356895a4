"""Estimate how long a job takes that is submitted to a cluster, for the time that it asks for."""

from workflow_scripts.workflow.gpu_hours import GpuHours
from workflow_scripts.workflow.snakemake_job import RUN_RULES, SnakemakeJob
from workflow_scripts.workflow.time_limit import (
    Machine,
    estimate_seconds,
    measure_earlier_jobs,
)
from workflow_scripts.workflow.wildcards import read_variant_key


def estimate_submitted_seconds(
    estimates: GpuHours, rule: str, wildcards: dict[str, str], device: str
) -> float | None:
    """Estimate the time of a job on a run, or of a search, alone on a device of a cluster.

    It follows from step times, or from other seeds where given weights are scored; else on a GPU
    from counted FLOPs, the upper end of their range. None if none of them is known.
    """
    job = SnakemakeJob(rule, wildcards)
    if job.run and job.run.weights:
        seconds = measure_earlier_jobs(job, device)
    else:
        machine = Machine(device, slots=1, slowdown=1.0)
        seconds = estimate_seconds(estimates.catalogue, estimates.config, machine, job)
    if seconds is not None or device != "cuda" or rule not in (*RUN_RULES, "search"):
        return seconds
    run = job.run or read_variant_key(wildcards).make_run(seed=0)
    hours = estimates.estimate_job(rule, run)
    return None if hours is None else 3600 * hours.upper
