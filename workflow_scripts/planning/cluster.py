"""What a run of the workflow would ask a SLURM cluster for, and the sbatch line that Snakemake would send."""

from collections import Counter
from pathlib import Path
from typing import Any

from workflow_scripts.catalogue.loading import Catalogue
from workflow_scripts.catalogue.requested import requested_runs
from workflow_scripts.catalogue.run_specs import parent, searched
from workflow_scripts.catalogue.task_specs import resolve_data
from workflow_scripts.checking import read_entries
from workflow_scripts.displays import intervened_runs
from workflow_scripts.errors import UserError
from workflow_scripts.planning import memory as gpu_memory
from workflow_scripts.planning.resources import Resources, fixed, preparation, scoring, searching, training
from workflow_scripts.schema import Config

ORDER = ("prepare_large", "search", "train", "evaluate", "candidates", "intervene", "analyse")


def asked(catalogue: Catalogue, config: Config) -> Counter[tuple[str, Resources]]:
    """How many jobs of which rule ask for what, at their first attempt. A run that two papers ask for counts once."""
    device = "cuda" if config.device == "auto" else config.device
    found: Counter[tuple[str, Resources]] = Counter()
    runs = requested_runs(catalogue, config)
    changed = {run for paper in config.papers for run in intervened_runs(catalogue, paper, runs)}
    for run in runs:
        found["train", training(run, config.scale, device)] += 1
        found["evaluate", scoring(run, config.scale, device)] += 1
        if run in changed:
            found["intervene", scoring(run, config.scale, device, rule="intervene")] += 1
    searches = dict.fromkeys(searched(catalogue, run, config.scale, config.precision) for run in runs)
    searches.pop(None, None)
    for run in searches:
        found["search", searching(run, config.scale, device)] += 1
    # What a search of another seed than the runs' starts from is trained, but shown nowhere.
    before = {parent(catalogue, run, config.scale, config.precision) for run in searches} - {None, *runs}
    for run in before:
        found["train", training(run, config.scale, device)] += 1
    if changed:
        found["candidates", fixed("candidates")] += len({run.task for run in changed})
    for task in dict.fromkeys(run.task for run in runs):
        if catalogue.tasks[task].disk and resolve_data(catalogue, task, config.scale)["sources"]:
            found["prepare_large", preparation(task, config.scale)] += 1
    for paper in config.papers:
        if analyses := len(catalogue.papers[paper].analyses):
            found["analyse", fixed("analyse")] += analyses
    return found


def sbatch_line(rule: str, resources: Resources, profile: dict[str, Any]) -> str:
    """What the SLURM executor sends for a job; words in capitals stand for what differs from job to job."""
    given = (profile.get("set-resources") or {}).get(rule, {})
    gpu, gres = given.get("gpu", resources.gpu), given.get("gres")
    if gres and "resources.gres(" in gres:
        gres = f"gpu:{resources.gpu}"
    parts = [
        "sbatch",
        f"--signal=TERM@{resources.save_seconds}" if resources.save_seconds else "",
        "--parsable --job-name NAME --output LOG --export=ALL --comment RULE_AND_RUN -p PARTITION",
        f"-t {given.get('runtime', resources.runtime)}",
        f"--mem {given.get('mem_mb', resources.mem_mb)}",
        "--nodes=1",
        "--requeue" if profile.get("slurm-requeue") else "",
        # The executor leaves the number of tasks of a GPU job to SLURM.
        "" if gpu or gres else "--ntasks=1",
        f"--cpus-per-task={resources.threads}",
        "-D FOLDER",
        f"--gres={gres}" if gres else "",
        f"--gpus={gpu}" if gpu else "",
        "--wrap=COMMAND",
    ]
    return " ".join(part for part in parts if part)


def show(catalogue: Catalogue, config: Config, folder: str) -> None:
    """Print jobs, GPUs, cores, memory and time of each rule, and the sbatch lines."""
    profile, rows = read_entries(Path(folder) / "profile.yaml"), asked(catalogue, config)
    if profile.get("executor") != "slurm":
        raise UserError(f"{folder}: key 'executor' is not slurm; take profiles/slurm-gpus or profiles/slurm-gres")
    print(f"{', '.join(config.papers)} at scale {config.scale} with {folder}: what a job asks for at its first attempt")
    print(f"  {'rule':13} {'jobs':>6} {'GPUs':>5} {'cores':>6} {'memory':>8} {'time':>7}")
    for (rule, resources), count in sorted(rows.items(), key=lambda row: (ORDER.index(row[0][0]), row[0][1].mem_mb)):
        memory, time = f"{resources.mem_mb / 1000:g} GB", f"{resources.runtime // 60}:{resources.runtime % 60:02}"
        guess = " by estimate" if resources.estimated else ""
        print(f"  {rule:13} {count:6} {resources.gpu:5} {resources.threads:6} {memory:>8} {time:>7}{guess}")
    for line in gpu_memory.report(catalogue, config, requested_runs(catalogue, config)):
        print(f"  GPU memory {line}")
    for line in dict.fromkeys(sbatch_line(rule, resources, profile) for rule, resources in rows):
        print(line)
    print("Estimates are from sizes and data, upper ones: nothing like these jobs has been measured here.")
    print("Each further attempt asks for as much memory again. Other jobs take seconds and run where Snakemake runs.")
    print("Account, partition and QOS are yours to name, and so is any --set-resources: see docs/cluster.md.")
