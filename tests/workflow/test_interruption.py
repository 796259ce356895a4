"""Runs that fail, are interrupted or are killed: the messages on the terminal, and the next call,
which continues.
"""

import os
import re
import signal
import subprocess
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.limits import HANGS
from tests.workflow.four_rows import PAPER
from tests.workflow.projects import DATA, RUN, SCORES, Project
from tests.workflow.projects import TRAINED as TARGET
from workflow_scripts.common.files import read_json
from workflow_scripts.workflow.written_results import MARKS, list_marked_files

REFUSED = (
    "error: another ./reproduce is running in this folder; wait until it ends, or stop it: kill"
)
REFUSED_ALONE = (
    "error: Snakemake of another ./reproduce is running in this folder; wait until it ends"
)
KEPT = "1 result was written as an earlier call was stopped, and stays:"

TABLE = "results/demo/tables/mine/table1.csv"
ONE_TABLE = PAPER | {
    "experiments.yaml": """
title: One row
citation: A paper of one row
seeds: {demo: [1]}
demo:
  - {task: scan-jump-x2, methods: {transformer: [default]}}
""",
    "displays.yaml": """
axes:
  model:
    works: {method: transformer, variant: default}
displays:
  table1:
    source: Table 1
    title: Exact match
    group: Results
    rows: {each: [model]}
    columns:
      - {column: SCAN, task: scan-jump-x2, metric: exact_match}
""",
    "claims.yaml": "claims: []\n",
}


@pytest.fixture
def long_run(project):
    """A copy whose demo trains far longer than a test."""
    project.set_demo_steps(100000)
    return project


def started(project) -> subprocess.Popen[str]:
    """./reproduce in a process group of its own, as a terminal would have it, when its training has
    begun.
    """
    process = subprocess.Popen(
        ["./reproduce", TARGET],
        cwd=project.root,
        start_new_session=True,
        text=True,
        stderr=subprocess.PIPE,
    )
    log = project.root / f"results/demo/logs/train/{RUN}.log"
    deadline = time.monotonic() + 120
    while not (log.exists() and log.read_text()):
        assert time.monotonic() < deadline and process.poll() is None, "the training did not begin"
        time.sleep(0.2)
    return process


def wait_for_end_of(process: subprocess.Popen[str]) -> str:
    return process.communicate(timeout=HANGS)[1]


def saved_state(root: Path) -> list[Path]:
    return list((root / f"results/demo/state/{RUN}").glob("*/step-*"))


@pytest.mark.quick_faults
def test_a_second_call_is_refused_a_dry_run_is_not_and_ctrl_c_saves_the_training_and_leaves_no_lock(
    long_run,
):
    process = started(long_run)
    try:
        beside = long_run.reproduce(TARGET)
        assert (beside.returncode, beside.stdout, beside.stderr) == (
            1,
            "",
            f"{REFUSED} {process.pid}\n",
        )
        dry = long_run.reproduce("-n", TARGET)
        assert (dry.returncode, dry.stdout.splitlines()[-1]) == (
            0,
            "1 job: 1 train (not run: -n)",
        ), dry.stderr
        assert process.poll() is None and list((long_run.root / ".snakemake").glob("locks/*"))
    finally:
        os.killpg(process.pid, signal.SIGINT)
    said = wait_for_end_of(process)
    assert process.returncode != 0
    assert "run the same command again to continue" in said and "Traceback" not in said
    assert saved_state(long_run.root)
    assert not list((long_run.root / ".snakemake").glob("locks/*"))
    assert {rule for rule, _ in long_run.planned(TARGET)} == {"train"}


@pytest.mark.faults
def test_a_killed_training_is_said_to_be_killed(long_run):
    """SIGKILL, as from the kernel when memory is full: its log ends with a line of progress."""
    process = started(long_run)
    os.kill(find_trainer(long_run), signal.SIGKILL)
    said = wait_for_end_of(process)
    assert process.returncode == 1
    killed = "it was killed, as the system does when memory is full (--cores 1 needs less)"
    assert re.search(rf"^    {re.escape(killed)}; its last line: \S", said, re.MULTILINE)


@pytest.mark.faults
def test_killed_with_its_locks_goes_on_at_the_next_call(long_run):
    process = started(long_run)
    snakemake = find_snakemake(process)
    try:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=HANGS)
        beside = long_run.reproduce(TARGET)
    finally:
        os.killpg(snakemake, signal.SIGKILL)
    assert (beside.returncode, beside.stderr) == (1, f"{REFUSED_ALONE}\n")
    wait_for_end_of(process)
    assert list((long_run.root / ".snakemake").glob("locks/*")), (
        "this test needs a lock that was left"
    )
    for file in ("kinds.yaml", "scan.yaml"):
        long_run.edit(f"catalogue/tasks/{file}", "max_steps: 100000,", "max_steps: 3,")
    done = long_run.make(TARGET)
    assert "LockException" not in done.stderr
    assert (long_run.root / TARGET).exists()


@pytest.mark.faults
def test_of_two_calls_at_once_one_makes_everything(project):
    calls = [
        subprocess.Popen(
            ["./reproduce", SCORES], cwd=project.root, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    said = {call.wait(timeout=HANGS): call.communicate()[1] for call in calls}
    # The one that runs may not have written its number yet.
    refusals = {f"{REFUSED} {call.pid}\n" for call in calls} | {f"{REFUSED_ALONE}\n"}
    assert said.keys() == {0, 1} and said[1] in refusals and "3 jobs done" in said[0]


@pytest.mark.faults
def test_where_the_file_system_has_no_locks_those_of_snakemake_count(
    project, tmp_path, monkeypatch
):
    """`flock` exits with 71 then. The locks' owner is unknown: they stay, and Snakemake says how to
    delete them.
    """
    flock = tmp_path / "bin/flock"
    flock.parent.mkdir()
    flock.write_text("#!/bin/sh\nexit 71\n")
    flock.chmod(0o755)
    monkeypatch.setenv("PATH", f"{flock.parent}:{os.environ['PATH']}")
    lock = project.root / ".snakemake/locks/0.output.lock"
    lock.parent.mkdir(parents=True)
    lock.write_text(f"{SCORES}\n")
    done = project.reproduce(SCORES)
    assert done.returncode == 1 and "--unlock" in done.stderr and lock.exists()
    project.make("--unlock")
    assert not lock.exists()


def find_child(process: int) -> int:
    (child,) = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return int(child)


def find_snakemake(process: subprocess.Popen[str]) -> int:
    """Snakemake is the child of the process that ./reproduce waits for."""
    return find_child(find_child(process.pid))


def find_trainer(project: Project) -> int:
    (lock,) = (project.root / f"results/demo/state/{RUN}").glob("*/lock")
    return int(lock.read_text().split()[0])


@contextmanager
def orphan(project: Project) -> Iterator[int]:
    """The process of a training whose Snakemake was killed while it trained."""
    process = started(project)
    snakemake = find_snakemake(process)
    trainer = find_trainer(project)
    os.kill(snakemake, signal.SIGKILL)
    process.wait(timeout=HANGS)  # its stderr stays open: the training has it too
    try:
        yield trainer
    finally:
        with suppress(ProcessLookupError):
            os.kill(trainer, signal.SIGKILL)


def has_ended(process: int) -> bool:
    """A process whose parent does not wait for it stays listed, without its command line."""
    command = Path(f"/proc/{process}/cmdline")
    return not command.exists() or not command.read_bytes()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.faults
def test_a_training_that_outlives_its_snakemake_keeps_its_run_and_nothing_else(long_run):
    """It does not hold the lock of ./reproduce, so other jobs run meanwhile; its own run waits
    until it ends.
    """
    with orphan(long_run) as trainer:
        other = "results/demo/data/cogs/dataset.json"
        done = long_run.reproduce(TARGET, other)
        assert done.returncode == 1 and f"is in use by process {trainer} on " in done.stderr, (
            done.stderr
        )
        assert "1 failed, 1 of 2 jobs done" in done.stderr and (long_run.root / other).exists()
        os.kill(trainer, signal.SIGTERM)
        wait_until(lambda: has_ended(trainer))
    assert saved_state(long_run.root) and {rule for rule, _ in long_run.planned(TARGET)} == {
        "train"
    }


def train_without_snakemake(project: Project) -> None:
    """A training that ends with its results after its Snakemake was killed."""
    project.set_demo_steps(300)
    with orphan(project) as trainer:
        wait_until((project.root / TARGET).exists)
        wait_until(lambda: has_ended(trainer))


@pytest.mark.faults
def test_what_a_training_made_whose_snakemake_was_killed_stays(project):
    """Snakemake alone would train the run again, since it did not see the end of the job."""
    train_without_snakemake(project)
    before = (project.root / TARGET).read_bytes()
    assert f"{KEPT} train {RUN}" in project.reproduce("-n", TARGET).stderr.splitlines()
    done = project.make(TARGET)
    assert f"{KEPT} train {RUN}" in done.stderr.splitlines()
    assert "Nothing to be done" in done.stderr and (project.root / TARGET).read_bytes() == before


def test_a_mark_on_a_download_does_not_count(tmp_path, monkeypatch):
    """No rule makes one that is there; else what a training has written would not be recorded."""
    monkeypatch.chdir(tmp_path)
    file = Path("results/downloads/wordnet/COPYRIGHT")
    other = Path("results/demo/runs/a/b/c/seed-1/run.json")
    for path in (file, file.with_name(f"{file.name}.json"), other):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        mark = MARKS / urlsafe_b64encode(str(path).encode()).decode()
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
    assert set(list_marked_files()) == {f"{file}.json", str(other)}


@pytest.mark.faults
def test_ctrl_c_just_after_a_training_has_written_its_results_keeps_them(project):
    """Its process still ends, and Snakemake has not seen its end."""
    project.set_demo_steps(300)
    written = project.root / TARGET
    process = started(project)
    while process.poll() is None and not written.exists():
        time.sleep(0.001)
    os.killpg(process.pid, signal.SIGINT)
    wait_for_end_of(process)
    assert process.returncode != 0
    before = written.read_bytes()
    done = project.make(TARGET)
    assert f"{KEPT} train {RUN}" in done.stderr.splitlines()
    assert "Nothing to be done" in done.stderr and written.read_bytes() == before


@pytest.mark.faults
def test_results_of_other_settings_or_older_than_their_data_are_made_again(project):
    train_without_snakemake(project)
    data = project.root / DATA / "dataset.json"
    made = data.stat().st_mtime
    os.utime(data, (made + 3600, made + 3600))
    assert record_written(project) == ""
    os.utime(data, (made, made))
    for file in ("kinds.yaml", "scan.yaml"):
        project.edit(f"catalogue/tasks/{file}", "max_steps: 300,", "max_steps: 3,")
    assert record_written(project) == ""
    assert "1 job: 1 train (not run: -n)" in project.reproduce("-n", TARGET).stdout
    for file in ("kinds.yaml", "scan.yaml"):
        project.edit(f"catalogue/tasks/{file}", "max_steps: 3,", "max_steps: 300,")
    done = project.make(TARGET)
    assert f"{KEPT} train {RUN}" in done.stderr.splitlines()
    assert "Nothing to be done" in done.stderr


def test_a_wrong_call_while_a_result_counts_as_being_written_is_said_once(project):
    """`record-written` reads the call before Snakemake does."""
    result = "results/demo/claims.csv"
    mark = project.root / ".snakemake/incomplete" / b64encode(result.encode()).decode()
    for file in (project.root / result, mark):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    done = project.reproduce("-n", "--config", "seeds=1")
    assert done.returncode == 1
    assert [line for line in done.stderr.splitlines() if line.startswith("error: ")] == [
        "error: --config: key 'seeds' is 1; input should be a valid list, as [1]"
    ]


def record_written(project: Project) -> str:
    done = project.command("record-written", "--", TARGET)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.faults
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_reproduce_alone_stops_its_jobs_too(long_run, number):
    process = started(long_run)
    snakemake = find_snakemake(process)
    trainer = find_trainer(long_run)
    os.kill(process.pid, number)
    said = wait_for_end_of(process)
    assert process.returncode == 128 + signal.SIGTERM
    assert has_ended(trainer) and has_ended(snakemake)
    assert "Traceback" not in said and saved_state(long_run.root)
    assert not list((long_run.root / ".snakemake").glob("locks/*"))


@pytest.mark.faults
def test_code_that_is_edited_during_a_call_is_named_at_its_end(long_run):
    process = started(long_run)
    long_run.change_code("tasks/batching.py")
    os.kill(process.pid, signal.SIGINT)
    said = wait_for_end_of(process)
    assert (
        "workflow_scripts/tasks/batching.py changed during this call, so its results can be of "
        "different code: ./reproduce -n lists what is stale\n"
    ) in said


@pytest.mark.faults
def test_a_job_that_begins_after_an_edit_is_recorded_as_of_the_edited_code(project):
    """Of two trainings, one after the other, the first is of the code before the edit."""
    project.set_demo_steps(1000)
    targets = [SCORES, SCORES.replace("seed-1", "seed-2")]
    process = subprocess.Popen(
        ["./reproduce", "--cores=1", *targets], cwd=project.root, stderr=subprocess.PIPE, text=True
    )
    logs = (project.root / f"results/demo/logs/train/{RUN}").parent
    wait_until(lambda: any("steps" in log.read_text() for log in logs.glob("*.log")))
    (first,) = (log.stem for log in logs.glob("*.log"))
    project.change_code("tasks/batching.py")
    said = wait_for_end_of(process)
    assert process.returncode == 0
    assert (
        "workflow_scripts/tasks/batching.py changed during this call; 2 results are of the edited "
        "code alone, and recorded so; others can be of different code: ./reproduce -n lists what "
        "is stale\n"
    ) in said
    stale = {(rule, Path(file).parent) for rule, file in project.planned(*targets)}
    run = Path(TARGET).parent.with_name(first)
    assert stale == {("train", run), ("train", run / "checkpoint"), ("evaluate", run / "eval")}


EDITED = "is of files that were edited during this call, and stale: the next ./reproduce repeats the work"


@pytest.mark.faults
def test_a_result_of_an_edit_of_the_code_that_was_undone_is_made_again(project):
    """An edit during the training, which is undone while the scores are computed."""
    project.set_demo_steps(300)
    module = project.root / "workflow_scripts/tasks/seq2seq/kind.py"
    code = module.read_text()
    process = subprocess.Popen(
        ["./reproduce", SCORES], cwd=project.root, stderr=subprocess.PIPE, text=True
    )
    logs = project.root / "results/demo/logs"
    training, scoring = (logs / rule / f"{RUN}.log" for rule in ("train", "evaluate"))
    wait_until(lambda: training.exists() and "steps" in training.read_text())
    project.change_code("tasks/seq2seq/kind.py")
    scores = project.root / SCORES
    wait_until(lambda: scores.exists() or (scoring.exists() and scoring.read_text() != ""))
    module.write_text(code)
    said = wait_for_end_of(process)
    assert process.returncode == 0, said
    assert f"{Path(SCORES).parent} {EDITED}\n" in said, said
    assert "1 job: 1 evaluate (not run: -n)" in project.reproduce("-n", SCORES).stdout
    assert "1 job done" in project.make(SCORES).stderr
    assert project.planned(SCORES) == set() and project.command("check").returncode == 0


@pytest.mark.faults
def test_a_table_of_an_edit_that_was_undone_is_made_again(made: Project):
    """Of a YAML file, which a table reads when its job begins. What it shows is not run here."""
    file = made.root / "papers/mine/displays.yaml"
    made.add_paper(ONE_TABLE)
    made.make(TABLE)
    before = (made.root / TABLE).with_suffix(".md").read_text()
    yaml = file.read_text()
    record = (made.root / TABLE).with_suffix(".json")
    began = record.stat().st_mtime_ns
    process = subprocess.Popen(
        ["./reproduce", TABLE, "-R", "table"], cwd=made.root, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr
    while "1 job" not in (line := process.stderr.readline()):
        assert line, "it has ended"
    file.write_text(yaml.replace("title: Exact match", "title: Edited"))
    wait_until(lambda: record.exists() and record.stat().st_mtime_ns > began)
    file.write_text(yaml)
    said = wait_for_end_of(process)
    assert process.returncode == 0 and f"results/demo/tables/mine/table1 {EDITED}\n" in said, said
    assert "Edited" in (made.root / TABLE).with_suffix(".md").read_text()
    assert "1 job done" in made.make(TABLE).stderr
    assert (made.root / TABLE).with_suffix(".md").read_text() == before
    assert made.planned(TABLE) == set()


@pytest.mark.faults
def test_what_is_computed_during_an_edit_is_recorded_as_of_the_code_before(made: Project):
    """The edit comes when a command has computed all and writes its first file."""
    scores = made.root / SCORES
    spec = f"results/demo/specs/{RUN}.json"
    run = str(Path(TARGET).parent)
    for words, out, module in (
        (
            ["evaluate", "--device", "cpu", "--spec", spec, "--run-dir", run, "--data", DATA],
            scores.parent,
            "tasks/seq2seq/kind.py",
        ),
        (
            ["prepare", "--spec", "results/demo/specs/data/scan-jump-x2.json"],
            made.root / DATA,
            "data/datasets/scan.py",
        ),
    ):
        before = read_json(out / "record.json")["code_digest"]
        file = made.root / "workflow_scripts" / module
        code = file.read_text()
        words = [*words, "--out", str(out.relative_to(made.root))]
        done = subprocess.run(
            [made.root / ".venv/bin/python", "-c", EDITS_AT_THE_END, str(file), out.name, *words],
            cwd=made.root,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert file.read_text() != code
        file.write_text(code)
        assert read_json(out / "record.json")["code_digest"] == before, words[0]


# Adds a line to a file when the folder is made in which the results are written.
EDITS_AT_THE_END = """
import os, sys
from workflow_scripts.__main__ import main
file, out, *words = sys.argv[1:]
def edit(event, arguments):
    global file
    if file and event == "os.mkdir" and os.path.basename(arguments[0]).startswith(f".{out}."):
        module, file = file, None
        open(module, "a").write("\\nCHANGED = 1\\n")
sys.addaudithook(edit)
code = main(words)
assert not file
sys.exit(code)
"""


@pytest.mark.faults
def test_ctrl_z_suspends_a_training_too(long_run):
    process = started(long_run)
    trainer = find_trainer(long_run)
    try:
        os.killpg(process.pid, signal.SIGTSTP)
        wait_until(lambda: is_suspended(trainer))
        os.killpg(process.pid, signal.SIGCONT)
        wait_until(lambda: not is_suspended(trainer))
    finally:
        os.killpg(process.pid, signal.SIGCONT)
        os.killpg(process.pid, signal.SIGINT)
    wait_for_end_of(process)
    assert saved_state(long_run.root)


def is_suspended(process: int) -> bool:
    state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    return state == "T"


@pytest.mark.quick_faults
def test_failed_job_shows_why_and_where(project):
    """A prepared data set that has lost its vocabulary: the command's own error line, its log, the
    exit code.
    """
    project.make("results/demo/data/scan-jump-x2/dataset.json")
    (project.root / "results/demo/data/scan-jump-x2/vocabulary.json").unlink()
    done = project.reproduce(TARGET)
    assert done.returncode == 1
    log = project.root / f"results/demo/logs/train/{RUN}.log"
    last = log.read_text().splitlines()[-1]
    assert last.startswith("error: ") and "vocabulary.json" in last
    assert f"    {last}" in done.stderr.splitlines()
    assert str(log.relative_to(project.root)) in done.stderr
    assert "1 failed, 0 of 1 job done" in done.stderr
    assert "Traceback" not in done.stderr
