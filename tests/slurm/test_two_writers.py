"""A node that SLURM takes for dead while its processes live: SLURM starts the job again, and two train one run."""

import os
import re
import signal
from pathlib import Path

import pytest

from tests.slurm.cluster import Cluster, alive, wait
from tests.slurm.conftest import RUNS, scores
from tests.slurm.submitting import begin, end, jobs_of, reproduce, trainers, training, wait_for_state
from tests.slurm.test_faults import check
from tests.slurm.views import cluster_with_views
from tests.workflow.projects import Project

pytestmark = pytest.mark.faults
RUN = RUNS[0]


def cut_off(project: Project, cluster: Cluster) -> tuple[int, str]:
    """Hold up the training and take slurmd away from its node, as when the network does. Returns process and node."""
    process = training(project, RUN)
    (job,) = jobs_of(cluster, project, "train")
    os.kill(process, signal.SIGSTOP)
    cluster.kill(f"slurmd-{job['NodeList']}")
    return process, job["NodeList"]


def restarted(project: Project, cluster: Cluster) -> bool:
    (job, *_) = jobs_of(cluster, project, "train")
    return job["Restarts"] == "1" and job["JobState"] not in ("PENDING", "CONFIGURING")


def test_a_second_training_is_kept_out_by_the_lock_of_the_first(long_project: Project, cluster: Cluster, undisturbed):
    """Both nodes see one lock: what SLURM has started again is refused until the first training ends."""
    call = begin(long_project, cluster, *scores(RUN))
    wait_for_state(long_project, RUN, call)
    first, node = cut_off(long_project, cluster)
    log = long_project.root / f"results/demo/logs/train/{RUN}.log"
    try:
        wait(lambda: restarted(long_project, cluster), 600, "SLURM does not start the job again")
        wait(lambda: "is in use by process" in log.read_text(), 120, "the second training is not refused")
        os.kill(first, signal.SIGCONT)
        end(call, timeout=1500)
    finally:
        cluster.start_slurmd(node)
    check(long_project, undisturbed, (RUN,))


@pytest.mark.parametrize("back", ["while the second trains", "after the end"])
def test_two_trainings_without_a_common_lock(long_project: Project, undisturbed, back: str):
    """As on a file system without locks; the first goes on while the second trains, or when all is over."""
    with cluster_with_views(long_project.root, seconds=1) as cluster:
        call = begin(long_project, cluster, *scores(RUN))
        wait_for_state(long_project, RUN, call)
        first, node = cut_off(long_project, cluster)
        if back == "after the end":
            end(call, timeout=1500)
            check(long_project, undisturbed, (RUN,))
        else:
            wait(lambda: trainers(long_project, RUN) - {first}, 600, "no second training")
        os.kill(first, signal.SIGCONT)
        if back == "while the second trains":
            end(call, timeout=1500)
        wait(lambda: not alive(first), 120, "the first training does not end")
        wait(lambda: not left(long_project, node), 120, "the first job does not end")
        check(long_project, undisturbed, (RUN,))
        done = reproduce(long_project, cluster, *scores(RUN))
        assert (done.returncode, "Nothing to be done" in done.stderr) == (0, True), done.stdout + done.stderr


def left(project: Project, node: str) -> list[str]:
    """Commands of Snakemake that a node still runs in this project."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            here = f"SLURMD_NODENAME={node}" in (folder / "environ").read_bytes().decode().split("\0")
            said = (folder / "cmdline").read_bytes().decode().replace("\0", " ")
            if here and os.path.realpath(folder / "cwd") == str(project.root) and re.search("snakemake", said):
                found.append(said)
        except (OSError, UnicodeDecodeError):
            continue
    return found
