"""What a person sees: the output of ./reproduce on a real (pseudo) terminal."""

import fcntl
import importlib.util
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest
from rich.console import Console

from tests.limits import HANGS
from tests.workflow.projects import DATA, ROOT


def on_a_terminal(command: list[str], folder, columns: int = 100) -> list[str]:
    """Every line that a command writes to a terminal, without colours; what was drawn over, too."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
    environment = os.environ | {"TERM": "xterm-256color"}
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=its,
        stderr=its,
        env=environment,
        close_fds=True,
    )
    os.close(its)
    written = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # Linux says so when the last writer has gone
            break
        if not part:
            break
        written += part
    os.close(ours)
    assert process.wait(timeout=HANGS) == 0
    assert b"\x1b[2K" in written, "nothing was drawn over: there was no live part"
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written.decode())
    return [line.rstrip() for line in plain.replace("\r", "\n").splitlines() if line.strip()]


def test_jobs_are_counted_and_the_live_part_is_taken_away(project):
    targets = [f"results/demo/data/{task}/dataset.json" for task in ("scan-jump-x2", "cogs")]
    lines = [line.strip() for line in on_a_terminal(["./reproduce", *targets], project.root)]
    assert "2 jobs: 2 prepare" in lines
    assert [line[:12] for line in lines if line.startswith("✓")] == ["✓ 1/2 prepar", "✓ 2/2 prepar"]
    assert re.fullmatch(r"2 jobs done in \d:\d\d", lines[-3])
    assert lines[-2:] == [f"Made: {target}" for target in targets]


@pytest.mark.slow
@pytest.mark.parametrize("columns", [80, 160])
def test_a_training_shows_a_bar_its_loss_its_pace_and_the_time_left(project, columns):
    """On a narrow terminal below the name of the run, else next to it."""
    with project.edited("catalogue/methods/seq2seq.yaml") as methods:
        methods["transformer"]["training"] = {"max_steps": 250}
    run = "scan-jump-x2/transformer/default/seed-1"
    lines = on_a_terminal(
        ["./reproduce", f"results/demo/runs/{run}/run.json"], project.root, columns
    )
    shown = r"\d+/250 steps  \d+\.\d/s  \d:\d\d left  loss \d+\.\d+"
    name = r"   *" if columns == 80 else rf"  train      {run} *"
    found = [line for line in lines if re.match(rf"{name}[━╸╺]+ *{shown}", line)]
    assert len(found) > 1, [line for line in lines if "steps" in line]
    assert all(len(line) <= columns for line in lines if "━" in line)
    assert f"  train      {run}" in {line[: len(f"  train      {run}")] for line in lines}
    assert any(re.match(r"\d of 2 jobs  *[━╸╺]+", line) for line in lines), lines


@pytest.mark.parametrize(
    ("logged", "shown"),
    [
        (
            "stopped at step 7, state saved; run the same command again to continue",
            "stopped at step 7, state saved; its next job waits in SLURM's queue",
        ),
        ("7/250 steps  6.2/s  0:39 left  loss 1.2", "7/250 steps  6.2/s  0:39 left  loss 1.2"),
    ],
)
def test_a_running_training_that_was_stopped_waits_for_its_next_job(tmp_path, logged, shown):
    log = tmp_path / "seed-1.log"
    log.write_text(f"a/b/c/seed-1: {logged}\n")
    job = load_plugin().Job("train", "a/b/c/seed-1", {}, [str(log)], "")
    assert job.read_progress() == shown


def test_the_view_has_as_many_jobs_as_the_terminal_has_lines(tmp_path):
    """Of a hundred submitted jobs those that train come first; the line of the whole is the last."""
    plugin = load_plugin()
    handler = object.__new__(plugin.LogHandler)
    handler.running = {}
    for number in range(100):
        log = tmp_path / f"seed-{number}.log"
        if number == 70:
            log.write_text("a/b/c/seed-70: 7/250 steps  6.2/s  0:39 left  loss 1.2\n")
        handler.running[number] = plugin.Job("train", f"a/b/c/seed-{number}", {}, [str(log)], "")
    handler.counts, handler.done = plugin.Counter({"train": 300}), 12
    handler.started = plugin.time.monotonic()
    handler.console = Console(width=160, height=20, file=io.StringIO())
    with handler.console.capture() as capture:
        handler.console.print(handler.make_view())
    lines = capture.get().splitlines()
    assert len(lines) == 19
    assert lines[0].split()[:2] == ["train", "a/b/c/seed-70"]
    assert lines[-2].strip() == "and 83 more"
    assert lines[-1].startswith("12 of 300 jobs")


CRASH = """7/250 steps  6.2/s
Traceback (most recent call last):
  File "/usr/lib/python3.11/runpy.py", line 88, in _run_code
    exec(code, run_globals)
  File "{root}/workflow_scripts/training/loop.py", line 120, in update_weights
    loss, parts = setup.loss(model, batch)
  File "{root}/workflow_scripts/objectives/mine/objective.py", line 9, in objective
    states = model.encode(batch.src)
  File "{root}/.venv/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1, in call
    return call()
AttributeError: 'Batch' object has no attribute 'src'
"""


@pytest.mark.parametrize(
    ("logged", "shown"),
    [
        (
            CRASH,
            "workflow_scripts/objectives/mine/objective.py:9: "
            "AttributeError: 'Batch' object has no attribute 'src'",
        ),
        ("error: a.yaml:3: unknown key", "error: a.yaml:3: unknown key"),
        (CRASH + "error: a.yaml:3: unknown key", "error: a.yaml:3: unknown key"),
        (CRASH.replace("workflow_scripts", "elsewhere"), CRASH.splitlines()[-1]),
    ],
)
def test_a_failed_job_names_the_innermost_line_of_our_code(tmp_path, monkeypatch, logged, shown):
    monkeypatch.chdir(tmp_path)
    log = tmp_path / "seed-1.log"
    log.write_text(logged.replace("{root}", str(tmp_path)))
    job = load_plugin().Job("train", "a/b/c/seed-1", {}, [str(log)], "")
    assert job.read_failure() == shown


def test_the_jobs_of_a_rule_follow_each_other_by_seed():
    plugin = load_plugin()
    announced = ["train a/seed-10", "evaluate a/seed-9", "train a/seed-9", "evaluate a/seed-10"]
    jobs = []
    for text in announced:
        rule, about = text.split()
        jobs.append((plugin.Job(rule, about, {}, [], "command"), "no result yet"))
    assert list(plugin.align_jobs_to_run(jobs, is_grouped=False)) == [
        "train     a/seed-9   [dim]no result yet[/]",
        "train     a/seed-10  [dim]no result yet[/]",
        "evaluate  a/seed-9   [dim]no result yet[/]",
        "evaluate  a/seed-10  [dim]no result yet[/]",
    ]


def test_jobs_that_differ_in_the_seed_alone_share_a_line_unless_commands_are_listed(project):
    words = ("--papers", "lrf", "--scale", "small", "-n")
    grouped = project.make(*words).stdout.splitlines()
    trained = [line.split() for line in grouped if line.startswith("train ")]
    seeds = ["9", "jobs", "no", "result", "yet"]
    assert ["train", "cognition/lrf/default", *seeds] in trained
    assert not any("/seed-" in line for line in grouped if line.startswith("train "))
    assert any(line.split()[:4] == ["table", "lrf", "8", "jobs"] for line in grouped)
    assert grouped[-1].endswith("(not run: -n; -n -p lists every job with its command)")
    single = project.make(*words, "-p").stdout.splitlines()
    trained = [line for line in single if line.startswith("train ") and "/seed-" in line]
    counts = re.search(r"(\d+) train,", grouped[-1])
    assert counts and len(trained) == int(counts[1]) > 30
    assert len(grouped) < 60 < len(single)


@pytest.mark.faults
def test_trainings_that_fail_for_the_same_reason_say_it_once(made):
    """Their data cannot be read."""
    (made.root / DATA / "train.parquet").write_text("damaged")
    folder = "results/demo/runs/scan-jump-x2/transformer/default"
    done = made.reproduce(*(f"{folder}/seed-{seed}/run.json" for seed in (2, 3, 4)))
    assert done.returncode == 1
    failed = [line for line in done.stderr.splitlines() if line.startswith("✗ train ")]
    assert sum(line.endswith(", for the same reason") for line in failed) == 2
    assert len({line.split()[2] for line in failed}) == len(failed) == 3
    assert done.stderr.count(f"{DATA}/train.parquet cannot be read") == 1


def load_plugin():
    """Return the module of the terminal as Snakemake finds it, by its folder."""
    name = "snakemake_logger_plugin_terminal"
    path = ROOT / f"profiles/plugins/{name}/__init__.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
