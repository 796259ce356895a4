"""A cluster that keeps accounts: what real sacct says, and accounts and QOS that SLURM enforces."""

import shutil
import tempfile
import time
from pathlib import Path

import pytest

from tests.slurm import accounting
from tests.slurm.cluster import Cluster, missing, up, wait
from tests.slurm.conftest import RUNS, scores
from tests.slurm.submitting import (
    begin,
    end,
    jobs_of,
    reproduce,
    running,
    wait_for_state,
)
from tests.slurm.test_faults import check, resumed
from tests.workflow.projects import Project

pytestmark = pytest.mark.faults
RUN = RUNS[0]


@pytest.fixture(scope="module")
def counting():
    """A cluster with slurmdbd and MariaDB."""
    if lacking := missing(accounting.PROGRAMS):
        pytest.skip(
            f"NO ACCOUNTING HERE, nothing of it is tested: no {', '.join(lacking)} "
            "(Debian: apt-get install --no-install-recommends slurmdbd mariadb-server)"
        )
    folder = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))
    started = up(folder, accounts=True)
    yield started
    started.down()
    shutil.rmtree(folder)


def given(account: str) -> list[str]:
    return ["--default-resources", f"slurm_account={account}", f"qos={accounting.QOS}"]


def test_a_cancelled_job_is_seen_where_sacct_is_asked(
    long_project: Project, counting: Cluster, undisturbed
):
    """`sacct` says "CANCELLED by 0", which the executor would take for a running job."""
    asked = ("--slurm-status-command=sacct", *given(accounting.ACCOUNT), "--", *scores(RUN))
    process = begin(long_project, counting, *asked)
    wait_for_state(long_project, RUN, process)
    counting.run("scancel", running(counting, long_project, "train", RUN))
    said = end(process)
    assert said.count("✗ train") == 1 and "ended as CANCELLED" in said
    check(long_project, undisturbed, (RUN,))
    assert resumed(long_project, RUN) == 1
    jobs = accounting.ended(counting, long_project.root)
    assert sorted(state for state, *_ in jobs) == ["CANCELLED by 0", "COMPLETED", "COMPLETED"]
    assert {(account, qos) for _, account, qos, _ in jobs} == {(accounting.ACCOUNT, accounting.QOS)}
    assert sum(comment.startswith("rule_train") for *_, comment in jobs) == 2


def test_an_account_that_is_not_known_is_an_error_and_nothing_is_submitted(
    project: Project, counting: Cluster
):
    done = reproduce(project, counting, "--retries=0", *given("chemistry"), "--", *scores(RUN))
    assert done.returncode == 1 and "Traceback" not in done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert (
        line.startswith("error: SLURM has no account chemistry for you, but ")
        and accounting.ACCOUNT in line
    )
    assert not accounting.ended(counting, project.root)


def set_qos(cluster: Cluster, *limits: str) -> None:
    cluster.run("sacctmgr", "--immediate", "modify", "qos", accounting.QOS, "set", *limits)


def test_a_budget_that_is_used_up_is_named_and_jobs_start_when_there_is_more(
    project: Project, counting: Cluster
):
    set_qos(counting, "GrpTRESMins=cpu=0")
    process = begin(project, counting, *given(accounting.ACCOUNT), "--", *scores(RUN))
    wait(
        lambda: any(job["Reason"] == "QOSGrpCPUMinutesLimit" for job in jobs_of(counting, project)),
        "no job waits for the budget",
    )
    time.sleep(5)  # until the executor has looked
    assert process.poll() is None
    set_qos(counting, "GrpTRESMins=cpu=-1")
    said = end(process)
    assert said.count("the budget of your QOS is used up (QOSGrpCPUMinutesLimit)") == 1


def test_more_than_a_qos_allows_one_job_is_an_error(project: Project, counting: Cluster):
    set_qos(counting, "MaxTRESPerJob=mem=100")
    try:
        done = reproduce(
            project, counting, "--retries=0", *given(accounting.ACCOUNT), "--", *scores(RUN)
        )
    finally:
        set_qos(counting, "MaxTRESPerJob=mem=-1")
    assert done.returncode == 1
    assert "SLURM would never start it (QOSMaxMemoryPerJob)" in done.stderr
