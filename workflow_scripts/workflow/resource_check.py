"""Find resources of a call that nothing reads, and values of resources that Snakemake cannot use.

Snakemake takes any name without a word, and ends with a traceback at a wrong value.
"""

import argparse
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from workflow_scripts.common.validation import find_close_name, suggest_name
from workflow_scripts.workflow.resources import NO_GPU
from workflow_scripts.workflow.snakemake_call import read_arguments

if TYPE_CHECKING:
    from snakemake.resources import Resource

# Executors whose resources are known. None: the jobs run here. Another executor may read any.
KNOWN_EXECUTORS = (None, "local", "slurm", "recompose-slurm")
SNAKEMAKE_RESOURCES = (
    "mem",
    "mem_mb",
    "mem_mib",
    "disk",
    "disk_mb",
    "disk_mib",
    "runtime",
    "tmpdir",
    "shell_exec",
)
# tests/workflow/test_resource_check.py compares them with the code of the executor.
SLURM_RESOURCES = (
    "slurm_account",
    "slurm_partition",
    "slurm_cluster",
    "cluster",
    "clusters",
    "qos",
    "constraint",
    "slurm_extra",
    "mem_mb_per_cpu",
    "mpi",
    "mpi_tasks",
    "gpu",
    "gpus",
    "nvidia_gpu",
    "gpu_model",
    "gres",
    "nodes",
    "node",
    "slurm_nodes",
    "tasks",
    "tasks_per_node",
    "tasks_per_gpu",
    "cpus_per_task",
    "cpus_per_gpu",
)
# The executor refuses jobs with another value.
WHOLE_NUMBERS = (
    "nodes",
    "tasks",
    "tasks_per_node",
    "tasks_per_gpu",
    "cpus_per_task",
    "cpus_per_gpu",
)
# Names that are like the wrong resource, or like none.
MEANT_RESOURCES = {
    "account": "slurm_account",
    "partition": "slurm_partition",
    "queue": "slurm_partition",
    "time": "runtime",
    "walltime": "runtime",
    "cpus": "cpus_per_task",
}
# Options of sbatch, and what sets the same in a call of ./reproduce.
SBATCH_OPTIONS = {
    "--account": "--default-resources slurm_account={value}",
    "--partition": "--default-resources slurm_partition={value}",
    "--qos": "--default-resources qos={value}",
    "--constraint": "--default-resources constraint={value}",
    "--time": "--set-resources train:runtime=MINUTES",
    "--mem": "--set-resources train:mem={value}",
    "--gres": "--config gpu_request=--gres={value}",
    "--gpus": "--config gpu_request=--gpus={value}",
}
RESOURCES_OF_RULE = re.compile(r"^    resources:\n((?: {8}.*\n|\n)+)", re.MULTILINE)
RESOURCE = re.compile(r"^ {8}(\w+)=", re.MULTILINE)
DEFAULTS = "--default-resources"


def suggest_for_sbatch(arguments: list[str], message: str) -> str | None:
    """Say which option sets what an option of sbatch sets; None if the message names none.

    message: Snakemake's of the arguments, which it has refused.
    """
    option, _, value = message.removeprefix("unrecognized arguments: ").partition("=")
    option = option.split(" ")[0]
    if option not in SBATCH_OPTIONS or not message.startswith("unrecognized"):
        return None
    if not value and option in arguments[:-1]:
        value = arguments[arguments.index(option) + 1]
    advice = SBATCH_OPTIONS[option].format(value=value.split(" ")[0] or "VALUE")
    return f"there is no option {option}; write {advice} (docs/cluster.md)"


def find_wrong_resources(
    arguments: list[str], parsed: argparse.Namespace, rule_files: Collection[Path]
) -> Iterator[str]:
    """Yield a line for each resource that nothing reads, and each value that nothing can read.

    A name of one's own is none of these where --resources limits it: it then says how many jobs
    run at once.
    """
    set_resources = parsed.set_resources or {}
    defaults = parsed.default_resources or {}
    limited = set(parsed.resources or ())
    requested = {name for resources in set_resources.values() for name in resources} | set(defaults)
    if parsed.executor in KNOWN_EXECUTORS:
        known = {*SNAKEMAKE_RESOURCES, *SLURM_RESOURCES, *list_rule_resources(rule_files)}
        for rule, resources in set_resources.items():
            for name in resources:
                if name not in known | limited:
                    place = f"--set-resources {rule}:{name}"
                    yield f"{place}: nothing reads '{name}'; {_suggest_resource(name, known, rule)}"
        for name in defaults:
            if name not in known | limited:
                place = _name_defaults(arguments, name)
                yield f"{place}: nothing reads '{name}'; {_suggest_resource(name, known)}"
        of_jobs = {*SNAKEMAKE_RESOURCES, *NO_GPU, *list_rule_resources(rule_files)} | requested
        for name in sorted(limited - of_jobs):
            yield f"--resources {name}: no job has '{name}'; {suggest_name(name, of_jobs)}"
    for rule, resources in set_resources.items():
        for name, resource in resources.items():
            yield from _find_wrong_value(f"--set-resources {rule}:{name}", resource)
    for name, resource in defaults.items():
        yield from _find_wrong_value(_name_defaults(arguments, name), resource)
    for rule, resource in (parsed.set_threads or {}).items():
        if not isinstance(_evaluate(resource), int):
            yield f"--set-threads {rule}={resource.raw}: takes a whole number"


def find_replaced_defaults(arguments: list[str]) -> list[str]:
    """Return the default resources of a profile that --default-resources of a call drops."""
    without = _drop_defaults(arguments)
    if without == arguments:
        return []
    of_profile = read_arguments(without).default_resources or {}
    return sorted(set(of_profile) - set(read_arguments(arguments).default_resources))


def list_rule_resources(files: Iterable[Path]) -> set[str]:
    """List the resources that rules name in files of Snakemake's language."""
    names: set[str] = set()
    for file in files:
        for block in RESOURCES_OF_RULE.findall(file.read_text(encoding="utf-8")):
            names.update(RESOURCE.findall(block))
    return names


def _suggest_resource(name: str, known: Collection[str], rule: str = "RULE") -> str:
    """Return what to write in place of a resource that nothing reads."""
    if name in ("threads", "cores"):
        return f"write --set-threads {rule}=NUMBER"
    size = re.match(r"(mem|disk)_", name)
    if size:
        return f"write {size[1]} with a unit, as {size[1]}=64G, or {size[1]}_mb"
    if name in MEANT_RESOURCES:
        return f"did you mean '{MEANT_RESOURCES[name]}'?"
    close = find_close_name(name, known)
    if close:
        return f"did you mean '{close}'?"
    return (
        f"other options of sbatch go to slurm_extra, a limit of your own needs --resources {name}=N"
    )


def _name_defaults(arguments: list[str], name: str) -> str:
    """Return where a call sets a default resource: in the option, or in a profile."""
    if DEFAULTS in arguments or any(word.startswith(f"{DEFAULTS}=") for word in arguments):
        return f"{DEFAULTS} {name}"
    return f"default-resources of your profile, {name}"


def _drop_defaults(arguments: list[str]) -> list[str]:
    """Return the arguments without --default-resources and its words."""
    kept = []
    is_default = False
    for word in arguments:
        if word.startswith("-"):
            is_default = word.partition("=")[0] == DEFAULTS
        if not is_default:
            kept.append(word)
    return kept


def _evaluate(resource: "Resource") -> object:
    """Return the value for a job without input files. Raises Snakemake's errors."""
    from snakemake.iocontainers import InputFiles, Wildcards

    words = {"attempt": 1, "threads": 1, "rulename": "", "async_run": None}
    return resource.evaluate(Wildcards(), input=InputFiles(), **words).value


def _find_wrong_value(place: str, resource: "Resource") -> Iterator[str]:
    """Yield a line if no job could have the value of a resource."""
    from snakemake.exceptions import WorkflowError

    name = resource.name
    written = f"{place}={resource.raw}"
    try:
        value = _evaluate(resource)
    except (WorkflowError, TypeError) as error:
        text = str(error)
        if "input" in text or "wildcards" in text:  # it depends on the job
            return
        value = text
    if name == "runtime" and not isinstance(value, int):
        yield f"{written}: runtime takes minutes, or a time with a unit, as runtime=36h"
    elif name in ("mem_mb", "disk_mb") and not isinstance(value, int):
        stem = name.removesuffix("_mb")
        if resource.raw is None:  # Snakemake has renamed `mem`
            written = place.removesuffix("_mb")
        yield f"{written}: {name} takes a number of MB, {stem} a size with a unit, as {stem}=64G"
    elif name in WHOLE_NUMBERS and not isinstance(value, int):
        yield f"{written}: {name} takes a whole number"
