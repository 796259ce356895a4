"""Running the workflow on a cluster through the shipped profiles, and what comes out of it."""

import hashlib
import os
import subprocess
from pathlib import Path

from tests.limits import HANGS
from tests.slurm.cluster import Cluster, wait
from tests.workflow.projects import Project

# What must not depend on where and how often a run was started. (The manifests also hold times and
# machines.)
RESULTS = ("model.safetensors", "training.csv", "predictions.parquet", "scores.csv")


def command(*arguments: str) -> list[str]:
    return ["./reproduce", "--workflow-profile=profiles/slurm", *arguments]


def reproduce(
    project: Project, cluster: Cluster, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """./reproduce on the cluster, to its end."""
    return subprocess.run(
        command(*arguments),
        cwd=project.root,
        env=cluster.environment | environment,
        capture_output=True,
        text=True,
        timeout=HANGS,
    )


def begin(
    project: Project, cluster: Cluster, *arguments: str, **environment: str
) -> subprocess.Popen[str]:
    """The same in the background, in a process group of its own."""
    return subprocess.Popen(
        command(*arguments),
        cwd=project.root,
        env=cluster.environment | environment,
        start_new_session=True,
        text=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def end(process: subprocess.Popen[str]) -> str:
    """What a call in the background said, when it has ended well."""
    said = process.communicate(timeout=HANGS)[1]
    assert process.returncode == 0, said
    return said


def results(root: Path) -> dict[str, str]:
    """sha256 of every result of the demo, by its path."""
    folder = root / "results/demo"
    files = [
        file
        for part in ("runs", "analyses")
        for file in (folder / part).rglob("*")
        if file.is_file()
    ]
    kept = [
        file
        for file in files
        if file.name in RESULTS or ("analyses" in file.parts and file.suffix == ".csv")
    ]
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in kept
    }


def jobs_of(cluster: Cluster, project: Project, rule: str = "") -> list[dict[str, str]]:
    """The jobs of a project that the cluster has seen, by the rule that their comment names."""
    own = (job for job in cluster.jobs() if job["WorkDir"] == str(project.root))
    return [job for job in own if f"rule_{rule}" in job.get("Comment", "")]


def state_saved(project: Project, run: str) -> bool:
    return any((project.root / f"results/demo/state/{run}").glob("*/step-*"))


def trainings(project: Project) -> dict[str, int]:
    """The processes that train in this project, by their runs."""
    return {run: process for process, run in processes(project).items()}


def training(project: Project, run: str) -> int | None:
    """The process that trains a run in this project."""
    return trainings(project).get(run)


def trainers(project: Project, run: str) -> set[int]:
    """The same where there may be more than one."""
    return {process for process, trained in processes(project).items() if trained == run}


def processes(project: Project) -> dict[int, str]:
    """The run that each process of this project trains."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().decode().split("\0")
            own = os.path.realpath(folder / "cwd") == str(project.root)
            if own and words[1:4] == ["-m", "workflow_scripts", "train"]:
                spec = words[words.index("--spec") + 1]  # results/<scale>/specs/<run>.json
                found[int(folder.name)] = spec.split("/specs/")[1].removesuffix(".json")
        except (OSError, UnicodeDecodeError):
            continue
    return found


def running(cluster: Cluster, project: Project, rule: str, run: str) -> str:
    """Number of the running job of a run."""
    jobs = (job for job in jobs_of(cluster, project, rule) if job["JobState"] == "RUNNING")
    return next(job["JobId"] for job in jobs if job["Comment"].endswith(run.replace("/", "_")))


def wait_for_state(project: Project, run: str, process: subprocess.Popen[str]) -> None:
    """Wait until a training has saved a state to resume from, and still runs."""

    def ready() -> bool:
        assert process.poll() is None, process.communicate()[1]
        return state_saved(project, run) and training(project, run) is not None

    wait(ready, f"{run} saves no state")
