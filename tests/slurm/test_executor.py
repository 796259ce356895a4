"""What the executor concludes from SLURM's answers, on a real slurmctld."""

import asyncio
import importlib.util
import logging
import signal
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from tests.slurm.cluster import Cluster, wait
from tests.workflow.projects import ROOT


@pytest.fixture(scope="module")
def plugin():
    """The module as Snakemake finds it, by its folder."""
    name = "snakemake_executor_plugin_recompose_slurm"
    spec = importlib.util.spec_from_file_location(
        name, ROOT / f"profiles/plugins/{name}/__init__.py"
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def executor(plugin, cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    """An executor without a workflow: what it remembers of jobs, and no more."""
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    made = object.__new__(plugin.Executor)
    made.missed, made.silent_since = Counter(), None
    made.saved_states, made.warned_reasons = {}, set()
    made.tried_since, made.known_numbers, made.cancelled = {}, set(), threading.Event()
    made.run_uuid = "recompose-test"
    made.slurm_logdir = plugin.Path("slurm_logs")
    made.array_jobs, made._main_event_loop = set(), None
    made.logger = logging.getLogger("executor")
    return made


def ends(executor, plugin, number: str, times: int = 1) -> list[str | None]:
    """The end of a job that the executor reports at each of several polls."""
    found = []
    for _ in range(times):
        jobs = plugin.list_queue()
        by_number = {job.number: job for job in jobs or ()}
        executor.silent_since = (
            None if jobs is not None else executor.silent_since or plugin.time.monotonic()
        )
        found.append(
            asyncio.run(executor.find_end(number, by_number.get(number), jobs is not None))
        )
    return found


def submit(cluster: Cluster, *words: str) -> str:
    return cluster.run("sbatch", "--parsable", "--mem=50", "--output=/dev/null", *words).strip()


def test_the_end_of_a_job(executor, plugin, cluster: Cluster):
    good, bad, slow = (submit(cluster, f"--wrap={what}") for what in ("true", "false", "sleep 100"))
    wait(
        lambda: {cluster.shown(job)["JobState"] for job in (good, bad)} == {"COMPLETED", "FAILED"},
        "no end",
    )
    assert [ends(executor, plugin, job) for job in (good, bad, slow)] == [
        ["COMPLETED"],
        ["FAILED"],
        [None],
    ]
    cluster.run("scancel", slow)
    wait(lambda: ends(executor, plugin, slow) == ["CANCELLED"], "no end")


@pytest.mark.quick_faults
def test_a_job_that_slurm_has_forgotten_ends(executor, plugin):
    polls = plugin.MAX_MISSES + plugin.MAX_QUESTIONS
    *before, last = ends(executor, plugin, "999999", polls)
    assert before == [None] * (polls - 1) and last == "unknown: SLURM has forgotten it"


def test_a_job_that_can_never_start_is_cancelled(executor, plugin, cluster: Cluster):
    number = submit(cluster, "--partition=short", "--time=60", "--wrap=true")
    wait(lambda: cluster.shown(number)["Reason"] == "PartitionTimeLimit", "it is not refused")
    (said,) = ends(executor, plugin, number)
    assert said.startswith("CANCELLED: SLURM would never start it (PartitionTimeLimit)")
    wait(lambda: cluster.shown(number)["JobState"] == "CANCELLED", "it is not cancelled")


@pytest.mark.parametrize(
    ("reason", "never", "budget"),
    [
        ("PartitionTimeLimit", True, False),
        ("QOSMaxMemoryPerJob", True, False),
        ("QOSMaxWallDurationPerJobLimit", True, False),
        ("QOSMaxGRESPerJob", True, False),
        ("AssocMaxCpuMinutesPerJobLimit", True, False),
        ("QOSMinGRES", True, False),
        ("AssocGrpCPUMinutesLimit", False, True),
        ("QOSGrpGRESMinutes", False, True),
        ("AssocGrpBillingMinutes", False, True),
        # Others' jobs or one's own are in the way.
        ("AssocGrpCPURunMinutesLimit", False, False),
        ("QOSGrpGRESRunMinutes", False, False),
        ("QOSMaxGRESPerUser", False, False),
        ("QOSMaxJobsPerUserLimit", False, False),
        ("AssocMaxJobsLimit", False, False),
        ("AssocGrpCpuLimit", False, False),
        ("Priority", False, False),
        ("Resources", False, False),
        ("Dependency", False, False),
    ],
)
def test_reasons_for_which_a_job_waits(plugin, reason: str, never: bool, budget: bool):
    assert plugin.never_starts(reason) == never
    assert (plugin.BUDGET_IS_USED.fullmatch(reason) is not None) == budget


@pytest.mark.parametrize(
    ("end", "log", "expected"),
    [
        ("OUT_OF_MEMORY", "", True),
        ("FAILED", "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0", True),
        ("FAILED", "slurmstepd: error: Step 5.0 exceeded memory limit (9 > 8), being killed", True),
        ("FAILED", "/usr/bin/bash: line 1:  4711 Killed    python -m workflow_scripts", True),
        ("FAILED", f"Command '{'x' * 8000}' returned non-zero exit status 137.", True),
        ("FAILED", f"Killed\nCommand '{'x' * 8000}' failed", True),
        ("TIMEOUT", "/usr/bin/bash: line 1:  4711 Killed    python -m workflow_scripts", False),
        ("CANCELLED", "returned non-zero exit status 137.", False),
        ("FAILED", "error: out of memory; give the process more, or lower batch_tokens", True),
        ("FAILED", "error: run: the GPU's memory is full; lower training.batch_tokens", False),
        ("FAILED", "RuntimeError: boom", False),
        ("NODE_FAIL", "", False),
        ("TIMEOUT", "stopped at step 7, state saved", False),
    ],
)
def test_a_job_that_needed_more_memory(plugin, tmp_path, end: str, log: str, expected: bool):
    file = tmp_path / "job.log"
    file.write_text(f"step 1/10\n{log}\n")
    missing = tmp_path / "missing.log"
    assert plugin.ran_out_of_memory(end, [str(missing), str(file)]) == expected


def test_a_job_continues_only_if_each_attempt_gets_further(executor, plugin, tmp_path):
    log, state = tmp_path / "train.log", tmp_path / "state"
    training = SimpleNamespace(jobid=1, params={"state": str(state)}, log=[str(log)])
    evaluation = SimpleNamespace(jobid=2, params={}, log=[str(log)])
    log.write_text("a/b/c/seed-1: step 7/10 loss 1.0\n")

    def can_continue(end: str, job=training) -> bool:
        return executor.can_continue(plugin.SubmittedJobInfo(job), end)

    assert not can_continue("TIMEOUT"), "no state"
    (state / "step-7").mkdir(parents=True)
    assert can_continue("TIMEOUT")
    assert not can_continue("TIMEOUT"), "the same state"
    (state / "answers-1.safetensors").touch()
    assert can_continue("TIMEOUT"), "interventions have saved more"
    (state / "step-7").rename(state / "step-9")
    assert not can_continue("FAILED"), "not by its time limit"
    assert not can_continue("TIMEOUT", evaluation)
    log.write_text("a/b/c/seed-1: stopped at step 9, state saved; run it again\n")
    assert not can_continue("CANCELLED")
    assert can_continue("FAILED"), "SLURM's signal came before the limit"


def test_a_job_that_reached_its_time_limit_is_recorded_and_others_are_not(executor, plugin):
    recorded = []
    jobs = SimpleNamespace(
        record_time_limit=lambda rule, wildcards: recorded.append(("time", rule, wildcards)),
        record_out_of_memory=lambda rule, wildcards: recorded.append(("memory", rule, wildcards)),
    )
    executor.workflow = SimpleNamespace(globals={"JOBS": jobs})
    executor.report_job_error = lambda active, msg, aux_logs: None
    active = failed_job(plugin)
    for end in ("TIMEOUT", "OUT_OF_MEMORY", "FAILED", "CANCELLED by 0"):
        executor.report_failure(active, end)
    assert recorded == [(what, "evaluate", {"a": "b"}) for what in ("time", "memory")]
    assert active.job.attempt == 1


def failed_job(plugin, *logs: str):
    """A job in the first of three attempts."""
    rule = SimpleNamespace(name="evaluate")
    wildcards = {"a": "b"}
    job = SimpleNamespace(
        rule=rule,
        name=rule.name,
        wildcards=wildcards,
        wildcards_dict=wildcards,
        is_group=lambda: False,
        log=list(logs),
        jobid=1,
        attempt=1,
        restart_times=2,
    )
    return plugin.SubmittedJobInfo(job, "7")


@pytest.mark.parametrize(
    ("log", "message", "attempt"),
    [
        ("  File 'a.py', line 3\nNameError: name 'x' is not defined", "ended as FAILED.", 3),
        ("RuntimeError: CUDA error: an illegal memory access", "ended as FAILED.", 1),
        ("OSError: [Errno 5] Input/output error", "ended as FAILED.", 1),
        ("step 1/10\noom_kill", "ended as FAILED, out of memory.", 1),
    ],
)
def test_after_a_mistake_in_the_code_there_is_no_other_attempt(
    executor, plugin, tmp_path, log: str, message: str, attempt: int
):
    said = []
    jobs = SimpleNamespace(record_out_of_memory=lambda rule, wildcards: None)
    executor.workflow = SimpleNamespace(globals={"JOBS": jobs})
    executor.report_job_error = lambda active, msg, aux_logs: said.append(msg)
    file = tmp_path / "job.log"
    file.write_text(f"{log}\n")
    active = failed_job(plugin, str(file))
    executor.report_failure(active, "FAILED")
    assert said == [f"SLURM-job '7' {message} "]
    assert active.job.attempt == attempt


@pytest.mark.parametrize(
    "refusal", ["sbatch: error: invalid partition specified: gpux", "Invalid account"]
)
def test_what_slurm_refuses_is_not_submitted_again(executor, plugin, monkeypatch, refusal: str):
    said = []
    monkeypatch.setattr(executor, "report_job_error", lambda active, msg: said.append(msg))
    active = failed_job(plugin)
    executor._report_job_error_threadsafe(active, refusal)
    assert (said, active.job.attempt) == ([refusal], 3)


@dataclass
class Submissions:
    """What an executor submits, registers and reports, with what squeue answers in turn."""

    answers: list[list | None]
    submitted: list[int] = field(default_factory=list)
    registered: list[str | None] = field(default_factory=list)
    reported: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def submit(self, _run, job) -> None:
        self.submitted.append(job.jobid)

    def list_queue(self, *_options: str) -> list | None:
        return self.answers.pop(0)

    def wait(self, seconds: float) -> bool:
        """Of the event that ends all waiting, which is not set."""
        self.seconds += seconds
        return False


@pytest.fixture
def submissions(executor, plugin, monkeypatch: pytest.MonkeyPatch) -> Submissions:
    """Without a cluster: the time is that of the waits."""
    found = Submissions([])
    executor._job_submission_executor = found
    monkeypatch.setattr(plugin, "list_queue", found.list_queue)
    executor.cancelled = found
    monkeypatch.setattr(plugin, "time", SimpleNamespace(monotonic=lambda: found.seconds))
    executor.report_job_submission = lambda info: found.registered.append(info.external_jobid)
    executor.report_job_error = lambda info, msg: found.reported.append(msg)
    return found


UNANSWERED = "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"
FULL = "sbatch: error: QOSMaxSubmitJobPerUserLimit"


def test_a_submission_is_repeated_only_if_slurm_says_that_it_has_no_such_job(
    executor, plugin, submissions: Submissions
):
    comment = "rule_evaluate_wildcards_a"  # upstream joins what a job iterates over
    mine = plugin.Job("71", "PENDING", "", executor.run_uuid, comment)
    other = plugin.Job("70", "RUNNING", "", executor.run_uuid, "rule_evaluate_wildcards_c")
    # No answer either: SLURM may have the job.
    submissions.answers = [None, None, [other, mine]]
    executor._report_job_error_threadsafe(failed_job(plugin), UNANSWERED)
    assert (submissions.submitted, submissions.registered) == ([], ["71"])
    submissions.answers = [[other]]
    executor._report_job_error_threadsafe(failed_job(plugin), UNANSWERED)
    assert submissions.submitted == [1]
    # An attempt that has ended is no new submission, though squeue still lists it.
    submissions.answers = [[mine._replace(state="OUT_OF_MEMORY")]]
    executor._report_job_error_threadsafe(failed_job(plugin), UNANSWERED)
    assert (submissions.submitted, submissions.registered) == ([1, 1], ["71"])
    assert submissions.reported == []


def test_each_submission_waits_an_hour_for_slurm(executor, plugin, submissions: Submissions):
    active = failed_job(plugin)
    submissions.answers = [None] * 10_000
    executor._report_job_error_threadsafe(active, UNANSWERED)
    assert plugin.MAX_SUBMIT_SECONDS < submissions.seconds < plugin.MAX_SUBMIT_SECONDS + 60
    assert (submissions.reported, active.job.attempt) == ([UNANSWERED], 1)
    # A day later the same job has its hour again.
    submissions.seconds += 24 * 3600
    submissions.answers = [None, []]
    executor._report_job_error_threadsafe(active, UNANSWERED)
    assert (submissions.submitted, submissions.reported) == ([1], [UNANSWERED])


def test_while_the_queue_is_full_jobs_wait_and_lose_no_attempt(
    executor, plugin, submissions: Submissions
):
    active = failed_job(plugin)
    mine = plugin.Job("70", "RUNNING", "", executor.run_uuid, "rule_evaluate_wildcards_c")
    for _ in range(1000):
        submissions.answers = [[mine]]
        executor._report_job_error_threadsafe(active, FULL)
    assert submissions.submitted == [1] * 1000
    assert (submissions.reported, active.job.attempt) == ([], 1)
    # Where no job of this call could make room, an hour is enough.
    for _ in range(100):
        submissions.answers = [[]]
        executor._report_job_error_threadsafe(active, FULL)
    assert submissions.reported[:1] == [FULL]
    assert executor.warned_reasons == {"full queue"}


def test_a_held_job_has_not_ended_and_is_named_once(executor, plugin, caplog):
    for state in ("REQUEUE_HOLD", "STOPPED", "SIGNALING"):
        job = plugin.Job("7", state, "", "name", "")
        for _ in range(2):
            assert asyncio.run(executor.find_end("7", job, True)) is None
    assert [record.message for record in caplog.records] == [
        "SLURM holds job 7 (REQUEUE_HOLD): `scontrol release 7` lets it start, `scancel 7` ends it"
    ]


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([None, None, "COMPLETED\n"], [None, None, "COMPLETED"]),
        (["RUNNING\n", "FAILED\n"], [None, "FAILED"]),
    ],
)
def test_of_sacct_only_an_end_is_one(executor, plugin, monkeypatch, answers, expected):
    """It may not answer, or know less than SLURM, whose squeue has lost the job."""
    executor.missed["7"] = plugin.MAX_MISSES
    said = iter(answers)
    monkeypatch.setattr(plugin, "run_slurm_command", lambda *command: next(said))
    found = [asyncio.run(executor.find_end("7", None, True)) for _ in answers]
    assert found == expected


def test_a_job_is_not_judged_by_the_log_of_its_last_attempt(
    executor, plugin, monkeypatch, tmp_path
):
    log = tmp_path / "job.log"
    log.write_text("NameError: name 'x' is not defined\n")
    monkeypatch.setattr(plugin.SlurmExecutor, "run_job", lambda self, job: None)
    executor.run_job(failed_job(plugin, str(log)).job)
    assert not log.exists()


@pytest.mark.faults
def test_while_slurmctld_is_away_jobs_go_on_and_after_a_day_they_end(
    executor, plugin, cluster: Cluster
):
    number = submit(cluster, "--wrap=sleep 300")
    cluster.kill("slurmctld", signal.SIGTERM)  # it saves what it knows
    try:
        assert ends(executor, plugin, number) == [None]
        executor.silent_since -= plugin.MAX_SILENCE_SECONDS
        assert ends(executor, plugin, number) == ["unknown: SLURM has not answered for a day"]
    finally:
        cluster.start_slurmctld()
    assert ends(executor, plugin, number) == [None]
    cluster.run("scancel", number)


def test_jobs_are_submitted_by_priority(executor, monkeypatch):
    """Also where they are of several rules, and equal ones in their order."""
    submitted: list[str] = []
    monkeypatch.setattr(executor, "_submit_job", lambda job: submitted.append(job.name))
    priorities = {"a": 0, "b": 2, "c": 0, "d": 1, "e": 2}
    jobs = [
        SimpleNamespace(
            name=name,
            priority=priority,
            rule=SimpleNamespace(name="ace".find(name)),
            is_group=lambda: False,
        )
        for name, priority in priorities.items()
    ]
    executor.run_jobs(jobs)
    assert submitted == ["b", "e", "d", "a", "c"]


def test_the_private_names_of_upstreams_executor_are_still_there(plugin):
    """What is overridden or called of it: another version may have other names."""
    upstream = plugin.SlurmExecutor
    assert {"_report_job_error_threadsafe", "_report_job_submission_threadsafe", "run_job"} <= vars(
        upstream
    ).keys()
    lock = (ROOT / "envs/requirements.lock").read_text()
    assert "snakemake-executor-plugin-slurm==2.8.0" in lock
    assert (
        subprocess.run([sys.executable, "-c", "import snakemake_executor_plugin_slurm"]).returncode
        == 0
    )
