"""Jobs that Snakemake would take for done: begun again and failed, or of rules that have come to declare more."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.workflow.projects import Project, copied, plain_environment, pretend, whole_copy
from tests.workflow.test_why import why

pytestmark = pytest.mark.quick_faults
RUN = "scan-jump-x2/transformer/default/seed-1"
DATA = "results/demo/data/scan-jump-x2"
TRAINED = f"results/demo/runs/{RUN}/run.json"
SCORES = f"results/demo/runs/{RUN}/eval/scores.csv"
TABLE = "results/demo/tables/sq_transformer/table1"


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A run of three steps, and its scores."""
    project = copied(tmp_path_factory.mktemp("made"))
    project.edit("catalogue/scales.yaml", "max_steps: 100\n", "max_steps: 3\n")
    with plain_environment():
        assert project.reproduce(SCORES).returncode == 0
    return project


@pytest.fixture
def made(made_once: Project, tmp_path: Path) -> Project:
    """A copy of it."""
    return whole_copy(made_once, tmp_path)


@pytest.fixture(scope="module")
def pretended_once(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A finished workflow without its work."""
    project = copied(tmp_path_factory.mktemp("pretended"))
    with plain_environment():
        pretend(project)
    return project


@pytest.fixture
def pretended(pretended_once: Project, tmp_path: Path) -> Project:
    """A copy of it."""
    return whole_copy(pretended_once, tmp_path)


def jobs(project: Project, *arguments: str) -> str:
    """The last line of `./reproduce -n`."""
    done = project.reproduce("-n", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def scored(project: Project) -> str:
    """The sha256 of the weights that the scores are of."""
    return json.loads((project.root / SCORES).with_name("evaluation.json").read_text())["checkpoint_sha256"]


def train_otherwise(project: Project, steps: int) -> str:
    """Change the number of steps of a run that was made with three; returns what was scored."""
    project.edit("catalogue/scales.yaml", "max_steps: 3\n", f"max_steps: {steps}\n")
    return scored(project)


def begin(project: Project) -> subprocess.Popen[bytes]:
    """./reproduce in a process group of its own, when its training has got its state folder."""
    process = subprocess.Popen(["./reproduce", SCORES], cwd=project.root, start_new_session=True)
    while not list((project.root / "results/demo/state" / RUN).glob("*/lock")):
        assert process.poll() is None
        time.sleep(0.1)
    return process


def test_a_run_that_failed_when_it_was_trained_again_is_not_taken_for_done(made: Project):
    """It finds no vocabulary. The scores of the first training are still there, and nothing of a later one."""
    before = train_otherwise(made, steps=7)
    vocabulary = made.root / DATA / "vocabulary.json"
    vocabulary.rename(vocabulary.with_suffix(".away"))
    assert made.reproduce(SCORES).returncode == 1
    vocabulary.with_suffix(".away").rename(vocabulary)
    assert not (made.root / TRAINED).exists() and scored(made) == before

    assert jobs(made, SCORES) == "2 jobs: 1 train, 1 evaluate (not run: -n)"
    first, second, _ = why(made, SCORES)
    assert first.startswith(f"train {RUN}: was begun again, and failed")
    assert second.startswith(f"evaluate {RUN}: reads {TRAINED}, ") and second.endswith("made again")
    done = made.reproduce(SCORES)
    assert done.returncode == 0, done.stderr
    trained = json.loads((made.root / TRAINED).read_text())
    assert trained["steps"] == 7 and trained["files"]["checkpoint/model.safetensors"] == scored(made) != before


def test_a_run_that_was_stopped_when_it_was_trained_again_is_not_taken_for_done(made: Project):
    before = train_otherwise(made, steps=100_000)
    process = begin(made)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(timeout=120) != 0
    assert not (made.root / TRAINED).exists() and scored(made) == before
    assert jobs(made, SCORES) == "2 jobs: 1 train, 1 evaluate (not run: -n)"


def test_what_a_job_has_made_whose_snakemake_was_killed_is_taken_over(made: Project):
    """A run that is trained again, whose record is still that of the first time: it is not trained a third time. The
    ./reproduce above Snakemake lives on, and leaves it to the next one to take the locks away."""
    train_otherwise(made, steps=400)
    process = begin(made)
    os.kill(int((made.root / ".snakemake/running").read_text().split()[2]), signal.SIGKILL)
    assert process.wait(timeout=60) != 0
    while not (made.root / TRAINED).exists():
        time.sleep(0.1)
    before = (made.root / TRAINED).read_bytes()
    done = made.reproduce(SCORES)
    assert done.returncode == 0, done.stderr
    assert "1 results without records are what would be made now: adopted" in done.stdout
    assert (made.root / TRAINED).read_bytes() == before and b'"steps": 400' in before
    assert "1 job done" in done.stderr and "up to date" in jobs(made, SCORES)


def test_an_output_that_a_rule_declares_since_then_is_made(pretended: Project):
    """Snakemake has records of the other outputs alone, and sees nothing that has changed without all of them."""
    pretended.edit(
        "rules/report.smk",
        '{display}.tex",\n',
        '{display}.tex",\n        "results/{scale}/tables/{paper}/{display}.txt",\n',
    )
    tables = {file for rule, file in pretended.planned() if rule == "table"}
    assert {f"{TABLE}.txt", f"{TABLE}.csv"} <= tables and not [file for file in tables if "/tables/" not in file]
    assert jobs(pretended, f"{TABLE}.csv") == "1 job: 1 table (not run: -n)"
    (sentence, _) = why(pretended, f"{TABLE}.csv")
    assert sentence.startswith(f"table sq_transformer/table1: did not make {TABLE}.txt before")


def test_what_was_only_deleted_is_not_missed(pretended: Project):
    """To save room: data that have been trained on, and weights that have been scored."""
    shutil.rmtree(pretended.root / DATA)
    for file in pretended.root.glob("results/demo/runs/*/*/*/*/checkpoint/*"):
        file.unlink()
    assert "up to date" in jobs(pretended) and "up to date" in jobs(pretended, SCORES)


@pytest.mark.parametrize("file", ["runs/*/*/*/*/interventions/answers.parquet", "analyses/*/*/analysis.json"])
def test_what_no_finished_job_reads_is_missed(pretended: Project, file: str):
    """Answers that only an analysis reads, a manifest whose tables are there."""
    deleted = sorted(pretended.root.glob(f"results/demo/{file}"))[0]
    deleted.unlink()
    planned = [name for _, name in pretended.planned()]
    assert str(deleted.relative_to(pretended.root)) in planned
