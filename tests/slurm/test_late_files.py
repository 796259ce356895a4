"""A folder on a file system that shows each machine late what another one has made, as NFS does."""

import subprocess
import time
from pathlib import Path

import pytest

from tests.slurm.cluster import Cluster
from tests.slurm.conftest import CUT
from tests.slurm.submitting import command, jobs_of, results
from tests.slurm.views import cluster_with_views, within
from tests.workflow.projects import Project

pytestmark = pytest.mark.faults
# NFS looks again after 3 to 60 s. More than a job takes here: else it is over when its files are first looked for.
LATE_SECONDS = 50
RUN = Path(CUT[1]).parents[1]
FILES = [str(RUN / name) for name in ("run.json", "training.csv", "checkpoint/model.safetensors", "eval/scores.csv")]


def reproduce(project: Project, cluster: Cluster, *arguments: str) -> subprocess.CompletedProcess[str]:
    """./reproduce on a machine that is neither node, and where somebody looks at the files of a run all the time."""
    looking = f'while sleep 1; do stat {" ".join(FILES)}; done >/dev/null 2>&1 & "$@"; code=$?; kill $!; exit $code'
    return subprocess.run(
        [*within(project.root, LATE_SECONDS), "sh", "-c", looking, "sh", *command(*arguments)],
        cwd=project.root,
        env=cluster.environment,
        capture_output=True,
        text=True,
        timeout=900,
    )


def test_files_of_other_machines_are_waited_for(project: Project, local_demo: dict[str, str]):
    """./reproduce and each node have views of their own: every job's files are late for those that read them."""
    with cluster_with_views(project.root, LATE_SECONDS) as cluster:
        done = reproduce(project, cluster, *CUT)
        jobs = jobs_of(cluster, project)
    assert done.returncode == 0, done.stderr
    found = results(project.root)
    assert len(found) > 3 * 2 + 2 and found.items() <= local_demo.items()
    assert [job["JobState"] for job in jobs] == ["COMPLETED"] * 5, "a job was run again"
    assert {job["NodeList"] for job in jobs} == {"n1", "n2"}


def test_too_short_a_wait_costs_a_call_and_no_training(project: Project, local_demo: dict[str, str]):
    """Where a training's files are later than Snakemake waits, the next call takes them over."""
    with cluster_with_views(project.root, LATE_SECONDS) as cluster:
        done = reproduce(project, cluster, "--latency-wait=1", "--retries=0", CUT[1])
        assert done.returncode == 1 and "Traceback" not in done.stderr
        assert "issing" in done.stderr, done.stderr
        time.sleep(LATE_SECONDS)
        done = reproduce(project, cluster, CUT[1])
        jobs = jobs_of(cluster, project, "train")
    assert done.returncode == 0, done.stderr
    found = results(project.root)
    assert CUT[1].removeprefix("results/demo/") in found and found.items() <= local_demo.items()
    assert [job["JobState"] for job in jobs] == ["COMPLETED"]


def test_a_view_is_late(project: Project):
    """What the tests above rest on: a machine that has missed a file goes on missing it."""
    with cluster_with_views(project.root, LATE_SECONDS):
        look = "test -e new && exit 1; touch seen; until test -e new; do sleep 0.5; done"
        watching = subprocess.Popen([*within(project.root, 3), "sh", "-c", look], cwd=project.root)
        while not (project.root / "seen").exists():
            time.sleep(0.05)
        (project.root / "new").touch()
        made = time.monotonic()
        assert watching.wait(timeout=30) == 0
        assert 1 < time.monotonic() - made < 10
