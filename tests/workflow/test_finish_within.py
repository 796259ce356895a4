"""./reproduce in a limited time, by real trainings: what is started, exported and saved."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.limits import HANGS
from tests.workflow.fake_gpu import FakeTools
from tests.workflow.projects import RUN, SCORES, TRAINED, Project, copied
from workflow_scripts.common.files import read_csv, write_csv
from workflow_scripts.results import Results
from workflow_scripts.workflow.limited_run import drop_dry_run_words
from workflow_scripts.workflow.snakemake_process import run_snakemake
from workflow_scripts.workflow.step_time_records import STEP_TIME_COLUMNS

PRIMARY, SECOND_PRIMARY = (f"scan-jump-x2/transformer/default/seed-{seed}" for seed in (1, 2))
OTHER = "scan-jump-x2/sq-transformer/sal/seed-1"
DATA = "results/demo/data/scan-jump-x2/dataset.json"
EXPORTED = Path("results/demo/exported/runs")
# All that a run has but its weights.
FILES = {
    *("run.json", "record.json", "training.csv", "eval/evaluation.json", "eval/record.json"),
    *("eval/predictions.parquet", "eval/scores.csv"),
}


def scores(run: str) -> str:
    return f"results/demo/runs/{run}/eval/scores.csv"


def set_step_times(project: Project, **seconds: float) -> None:
    """Let step_times.csv have only these at `demo`, by method, for a CPU and for a GPU."""
    file = project.root / "catalogue/step_times.csv"
    rows = [row for row in read_csv(file) if row["scale"] != "demo"]
    for method, number in seconds.items():
        method, variant = ("sq-transformer", "sal") if method == "sal" else (method, "default")
        for device in ("cpu", "cuda"):
            row = {
                "scale": "demo",
                "task": "scan-jump-x2",
                "method": method,
                "variant": variant,
                "device": device,
                "precision": "fp32",
                "processes": "",
            }
            rows.append(row | {"seconds_per_step": str(number), "checkpoint_bytes": "140456"})
    write_csv(file, STEP_TIME_COLUMNS, rows)


def list_files(folder: Path) -> set[str]:
    return {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}


def read_results(project: Project, run: str) -> dict[str, bytes]:
    """The files of a run that are equal if the results are, weights included."""
    folder = project.root / f"results/demo/runs/{run}"
    files = [*FILES, "checkpoint/model.safetensors"]
    return {
        name: (folder / name).read_bytes() for name in files if not name.endswith("record.json")
    }


@pytest.mark.faults
def test_with_enough_time_everything_is_finished_and_exported(project: Project):
    project.set_demo_steps(4)
    assert project.command("new-paper", "mine").returncode == 0
    words = ("--papers", "mine", "--finish-within", "5m")
    done = project.make(*words)
    demo, exported = project.root / "results/demo", project.root / EXPORTED / RUN
    assert "Starting 1 of 1 open runs: about " in done.stderr
    assert done.stderr.splitlines()[-1] == (
        "Everything is finished (exported to results/demo/exported); the page: results/demo/index.html"
    )
    assert (demo / "tables/mine/table1.csv").exists() and (demo / "claims.csv").exists()
    assert (demo / "index.html").exists()
    assert list_files(exported) == FILES
    assert all(
        (exported / name).read_bytes() == (demo / "runs" / RUN / name).read_bytes()
        for name in FILES
    )
    results = Results(project.root / EXPORTED.parent)
    assert list(results.runs().index) == [RUN] and len(results.scores()) > 0

    # What was finished before is exported, too, and weights on request.
    shutil.rmtree(exported)
    project.make(*words, "--export-weights")
    assert list_files(exported) > FILES | {"checkpoint/model.safetensors"}
    assert "Page: results/demo/index.html" in project.make("--papers", "mine").stdout

    # A run that cannot be exported is no success, though everything is finished.
    shutil.rmtree(demo / "exported")
    (demo / "exported").write_text("a file where a folder belongs")
    done = project.reproduce(*words)
    assert done.returncode == 1 and f"error: {RUN} is not exported (" in done.stderr


@pytest.mark.faults
def test_with_little_time_the_runs_of_primary_claims_are_finished(project: Project):
    """A run that does not fit is not started; the command of the message makes it."""
    project.set_demo_steps(10)
    set_step_times(project, transformer=0.01, sal=20)
    targets = [scores(run) for run in (OTHER, SECOND_PRIMARY, PRIMARY)]
    began = time.monotonic()
    done = project.reproduce("--cores", "2", "--finish-within", "90s", *targets)
    assert done.returncode == 1 and time.monotonic() - began < 90
    assert "Starting 2 of 3 open runs, 2 of them for primary claims" in done.stderr
    last = done.stderr.splitlines()[-1]
    finished = "error: 2 of 3 open runs are finished (exported to results/demo/exported); left: 1 ("
    assert last.startswith(finished)
    assert f"; first {OTHER}); continue with: ./reproduce --cores 2 results/" in last
    for run in (PRIMARY, SECOND_PRIMARY):
        assert list_files(project.root / EXPORTED / run) == FILES
    assert not (project.root / f"results/demo/runs/{OTHER}").exists()
    assert not list((project.root / ".snakemake").glob("locks/*"))
    done = project.make(*last.partition("continue with: ./reproduce ")[2].split())
    assert "2 jobs done" in done.stderr and (project.root / scores(OTHER)).exists()


@pytest.mark.faults
@pytest.mark.parametrize("shares_gpu", [False, True], ids=["default", "gpu"])
def test_a_training_that_takes_too_long_is_saved_and_continues(
    shares_gpu, tmp_path: Path, monkeypatch
):
    """Its step time is far too short in the table. All bits are those of an undisturbed run."""
    project, undisturbed = copied(tmp_path / "first"), copied(tmp_path / "second")
    for each in (project, undisturbed):
        each.set_demo_steps(4000)
        set_step_times(each, transformer=0.0001)
        each.make(DATA)
    tools = FakeTools(tmp_path / "tools")
    profile = ("--workflow-profile", "profiles/gpu") if shares_gpu else ()
    if shares_gpu:
        tools.add_smi(70)
        tools.add_mps()
        monkeypatch.setenv("PATH", tools.path())
        monkeypatch.setenv("TMPDIR", str(tools.folder))
    began = time.monotonic()
    done = project.reproduce("--finish-within", "30s", *profile, SCORES)
    assert done.returncode == 1 and time.monotonic() - began < 30, done.stderr
    assert "Starting 1 of 1 open runs" in done.stderr and "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith(
        "error: 0 of 1 open runs are finished; left: 1 (at least 0:"
    )
    assert not tools.list_daemons() and tools.read_calls().count("quit") == shares_gpu
    (log,) = (project.root / f"results/demo/state/{RUN}").glob("*/log.txt")
    assert "stopped by signal" in log.read_text()
    assert not list((project.root / ".snakemake").glob("locks/*"))
    assert not (project.root / EXPORTED).exists()

    project.make(SCORES)
    undisturbed.make(SCORES)
    assert read_results(project, RUN) == read_results(undisturbed, RUN)


@pytest.mark.faults
def test_of_unknown_time_is_started_last_and_a_second_ctrl_c_disturbs_no_saving(project: Project):
    project.set_demo_steps(100000)
    set_step_times(project)
    process = subprocess.Popen(
        ["./reproduce", "--finish-within", "1h", TRAINED],
        cwd=project.root,
        start_new_session=True,
        text=True,
        stderr=subprocess.PIPE,
    )
    log = project.root / f"results/demo/logs/train/{RUN}.log"
    deadline = time.monotonic() + 120
    while not (log.exists() and "step" in log.read_text()):
        assert time.monotonic() < deadline and process.poll() is None, "the training did not begin"
        time.sleep(0.2)
    for _ in range(2):
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.2)
    said = process.communicate(timeout=HANGS)[1]
    assert process.returncode == 128 + signal.SIGINT, said
    assert (
        "Starting 1 of 1 open runs, 1 of them for primary claims, whose time is unknown, with 59:"
        in said
    )
    assert "left: 1 (of unknown time; first " in said and "Traceback" not in said
    assert list((project.root / f"results/demo/state/{RUN}").glob("*/step-*"))
    assert not list((project.root / ".snakemake").glob("locks/*"))


@pytest.mark.faults
def test_a_failed_run_is_tried_once_and_the_others_are_exported(project: Project):
    project.set_demo_steps(4)
    set_step_times(project, transformer=0.01, sal=0.01)
    with project.edited("catalogue/methods/seq2seq.yaml") as methods:
        methods["sq-transformer"]["variants"]["sal"]["training"] = {"learning_rate": 1e30}
    done = project.reproduce("--finish-within", "5m", scores(OTHER), scores(PRIMARY))
    assert done.returncode == 1 and done.stderr.count("Starting") == 1
    assert "error: 1 of 2 open runs are finished (exported" in done.stderr
    assert list_files(project.root / EXPORTED / PRIMARY) == FILES


@pytest.mark.quick_faults
def test_what_does_not_stop_is_killed_when_the_time_ends(tmp_path: Path, monkeypatch):
    """Snakemake, in whose place a script ignores that it is asked to stop, and a job of it."""
    script = tmp_path / "snakemake"
    script.write_text("#!/bin/sh\ntrap '' INT\nsleep 60\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    looks: list[float] = []
    began = time.monotonic()
    code = run_snakemake(
        [],
        [],
        None,
        stop_at=began + 1,
        kill_at=began + 2,
        watch=lambda: looks.append(time.monotonic()),
    )
    assert code == 128 + signal.SIGKILL and 2 <= time.monotonic() - began < 4 and len(looks) >= 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--finish-within", "--finish-within none is no time; give one such as 90s, 25m or 1h30m"),
        ("--finish-within 25", "--finish-within 25 is no time; give one such as 90s, 25m or 1h30m"),
        ("--export-weights", "--export-weights needs --finish-within, such as --finish-within 25m"),
        (
            "--finish-within 5m -F",
            "--finish-within runs what is not done; call ./reproduce without it to force jobs",
        ),
        pytest.param(
            "--finish-within 5m --cores",
            "argument --cores/-c: expected one argument",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "--finish-within 5m nothing.txt",
            "no rule makes nothing.txt; catalogue/ and papers/ list what exists",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "--finish-within 5m --workflow-profile profiles/slurm",
            "--finish-within is for the machine that it runs on",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_wrong_call_is_one_line(words: str, message: str, project: Project):
    done = project.reproduce(*words.split())
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith(f"error: {message}")


def test_a_dry_run_lists_what_would_be_started(project: Project):
    done = project.make("-n", "--finish-within", "10m", "--papers", "sq_transformer")
    assert done.stdout.splitlines()[0].endswith("seed-1  for a primary claim")
    assert done.stderr.startswith("Would start ") and not (project.root / "results").exists()


def test_a_dry_run_in_which_nothing_fits_is_no_error(project: Project):
    """The command that it names is no dry run."""
    done = project.make("-np", "--finish-within", "10s", "--papers", "sq_transformer")
    (line,) = done.stderr.splitlines()
    assert line.startswith("Would start nothing: 0 of 10 open runs are finished; left: 10 (at ")
    assert line.endswith("; continue with: ./reproduce -p --papers sq_transformer")
    assert not (project.root / "results").exists()


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("-n a", "a"),
        ("-np a", "-p a"),
        ("-pn", "-p"),
        ("-knpn", "-kp"),
        ("--dry-run --cores 2", "--cores 2"),
        ("--dryrun", ""),
        ("--dry -k", "-k"),
        ("-kp --config only=paper -- results/n", "-kp --config only=paper -- results/n"),
        ("--notemp -R train -j2", "--notemp -R train -j2"),
    ],
)
def test_all_spellings_of_a_dry_run_are_dropped(words: str, kept: str):
    assert drop_dry_run_words(words.split()) == kept.split()
