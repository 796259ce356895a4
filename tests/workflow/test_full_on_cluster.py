"""`full` from its sources to the page of its results, on SLURM, in tiny sizes, with a fault of each kind among its
jobs.

Everything of `full` is there but the sizes and most of the runs: of those that each paper asks for, in
the order of its file, the test has the ones that need a source file, or have a method on a kind of
task, that none before them has, with one seed. So each kind of task, each method and almost each
source file is there: 64 runs. Left out are papers/recompose, the tasks whose files others have, such
as shares of a training set or the second direction of a translation, other variants of a method, and
39 of Wikipedia's 41 files.
"""

import csv
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.data.file_server import serving
from tests.data.hub_server import HubServer
from tests.slurm.cluster import Cluster, wait
from tests.slurm.conftest import cluster
from tests.slurm.submitting import command, running, training
from tests.workflow.projects import Project, copied
from tests.workflow.tiny_full import shrink
from tests.workflow.tiny_upstream import add_models, write_mirror
from workflow_scripts.common.files import read_json

assert cluster  # a fixture
pytestmark = pytest.mark.full_cluster

PAPERS = ("carma", "cat", "lrf", "sq_transformer")
GATED = "google/gemma-2b"
TOKEN = "hf_ofaperson"
DEAD = "glue/RTE.zip"
CRASHING = "cogs/lrf/default/seed-1"
LONG = "scan-jump-x2/transformer/default/seed-1"  # it is pre-empted
STEPS = 600  # its length
MINUTES = 60  # what takes longer hangs
# Before a training in its rule: those that the file `crashes` lists end with an error of Python.
CRASH = """\
"! grep -sqx {wildcards.task}/{wildcards.method}/{wildcards.variant}/{wildcards.seed} crashes"
        " || python -c 'raise RuntimeError(\\"boom\\")' > {log:q} 2>&1; "
        """
# What a user of a smaller cluster gives: two nodes of four cores and 16 GB.
SMALL_NODES = ("--set-threads", "prepare_large=2", "--set-resources", "prepare_large:mem_mb=4000")
WORDS = ("--scale", "full", *SMALL_NODES)


@dataclass(frozen=True)
class Call:
    """A call of ./reproduce that has ended."""

    code: int
    said: str


@dataclass(frozen=True)
class FaultyFull:
    """A tiny `full` with its faults: the project, the file that is at a dead address, and the hub."""

    project: Project
    dead: Path
    hub: HubServer
    cluster: Cluster

    @property
    def results(self) -> Path:
        return self.project.root / "results/full"

    def begin(self, **environment: str) -> subprocess.Popen[str]:
        """Start ./reproduce; what it says goes to a file, since a pipe would be full."""
        with open(self.project.root / "said.txt", "w") as said:
            return subprocess.Popen(
                command(*WORDS),
                cwd=self.project.root,
                env=self.cluster.environment | {"HF_ENDPOINT": self.hub.url, **environment},
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def end(self, process: subprocess.Popen[str]) -> Call:
        code = process.wait(timeout=60 * MINUTES)
        return Call(code, (self.project.root / "said.txt").read_text())

    def repair(self) -> dict[str, str]:
        """Accept the licence, bring the file, and repair what crashes; returns the environment."""
        self.hub.tokens.add(TOKEN)
        os.replace(self.dead.with_name("kept"), self.dead)
        (self.project.root / "crashes").unlink()
        return {"HF_TOKEN": TOKEN}


@pytest.fixture
def full(tmp_path: Path, cluster: Cluster, monkeypatch):
    """The project, with its faults."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    project, mirror = copied(tmp_path / "project"), tmp_path / "mirror"
    write_mirror(mirror, tmp_path / "scratch")
    shrink(project, mirror)
    os.replace(mirror / DEAD, (mirror / DEAD).with_name("kept"))
    with project.edited("catalogue/methods/seq2seq.yaml") as methods:
        longer = {"task": "scan-jump-x2", "scale": "full", "training": {"max_steps": STEPS}}
        methods["transformer"]["when"].append(longer)
    (project.root / "crashes").write_text(f"{CRASHING}\n")
    train = '"python -m workflow_scripts train --device {resources.device:q}'
    project.edit("rules/train.smk", train, f"{CRASH}{train} --save-every 2")
    with serving(HubServer) as hub:
        add_models(hub, tmp_path / "models")
        hub.gated = {GATED}
        yield FaultyFull(project, mirror / DEAD, hub, cluster)


def preempt(full: FaultyFull, process: subprocess.Popen[str]) -> None:
    """When the long training has saved a state, a job of more urgency takes the GPUs of its node, and
    gives them back.
    """
    cluster, project = full.cluster, full.project

    def is_ready() -> bool:
        assert process.poll() is None, full.end(process).said
        saved = any((full.results / "state" / LONG).glob("*/step-*"))
        return saved and training(project, LONG) is not None

    wait(is_ready, f"{LONG} saves no state", 60 * MINUTES)
    node = cluster.shown(running(cluster, project, "train", LONG))["NodeList"]
    whole = ("--partition=urgent", f"--nodelist={node}", "--gpus=2", "--mem=100")
    job = ("sbatch", "--parsable", *whole, "--output=/dev/null", "--wrap=sleep 3000")
    urgent = cluster.run(*job).strip()
    wait(lambda: cluster.shown(urgent)["JobState"] == "RUNNING", "nothing gives way")
    wait(lambda: training(project, LONG) is None, "the training continues")
    cluster.run("scancel", urgent)


def read_rows(file: Path) -> list[dict[str, str]]:
    with open(file, newline="") as stream:
        return list(csv.DictReader(stream))


# The manifests of what is computed: downloads, data, searches, trainings, scores.
COMPUTED = (
    "downloads/**/*.json",
    "full/data/*/dataset.json",
    "full/candidates/**/*.json",
    "full/search/**/*.json",
    "full/runs/**/*.json",
)


def list_computed(full: FaultyFull) -> dict[Path, int]:
    """The time of each manifest of a download, data, a search, a training or scores."""
    results = full.results.parent
    found = {file for pattern in COMPUTED for file in results.glob(pattern)}
    return {file.relative_to(results): file.stat().st_mtime_ns for file in found}


def read_notes(full: FaultyFull, paper: str) -> dict[tuple[str, str, str], str]:
    """(table, row, column) -> note of each cell of a paper's tables."""
    notes = {}
    for file in sorted((full.results / "tables" / paper).glob("*.csv")):
        for row in read_rows(file):
            notes[file.stem, row["row"], row["column"]] = row["note"]
    return notes


def list_shown(full: FaultyFull) -> set[str]:
    """The tables, figures and analyses that are there, and the claims that are judged."""
    parts = ("tables/*/*.csv", "figures/*/*.svg", "analyses/*/*/analysis.json")
    files = {file for part in parts for file in full.results.glob(part)}
    claims = {f"{row['paper']}/{row['claim']}" for row in read_rows(full.results / "claims.csv")}
    return claims | {str(file.relative_to(full.results)) for file in files}


def check_faulty(full: FaultyFull, call: Call) -> None:
    """Everything is shown, with the causes of what is not there, and the training went on."""
    assert call.code == 1, call.said
    assert (full.results / "index.html").stat().st_size > 100_000
    words = {"carma": "Gemma", "cat": "RTE", "lrf": "COGS", "sq_transformer": ""}
    causes = {"carma": "gated", "cat": "download failed", "lrf": "failed", "sq_transformer": ""}
    for paper in PAPERS:
        notes = read_notes(full, paper)
        found = {note for (_, row, column), note in notes.items() if words[paper] in row + column}
        found = {note.split(";")[0] for note in found if note.startswith("not run: ")}
        assert found == {f"not run: {causes[paper]}"} - {"not run: "}, (paper, found)
    # The end: a line for each cause, and the command that tries again.
    lines = call.said.splitlines()[-4:]
    log = f"results/full/logs/train/{CRASHING}.log"
    expected = (
        f"error: {DEAD} could not be downloaded, 1 run not finished: ",
        f"error: {GATED} is gated, 2 runs not finished: ",
        f"error: train {CRASHING} failed, 1 run not finished: RuntimeError: boom ({log})",
    )
    for line, start in zip(sorted(lines[:3]), expected, strict=True):
        assert line.startswith(start), lines
    assert lines[3].startswith("Try again with: ./reproduce ") and "--scale full" in lines[3]
    run = full.results / "runs" / LONG
    assert read_json(run / "record.json")["resumed"] == 1
    assert int(read_rows(run / "training.csv")[-1]["step"]) == STEPS
    assert read_rows(run / "eval/scores.csv")


def test_full_with_a_fault_of_each_kind_and_again_when_they_are_repaired(full: FaultyFull):
    process = full.begin()
    preempt(full, process)
    check_faulty(full, full.end(process))
    shown, before = list_shown(full), list_computed(full)

    again = full.end(full.begin(**full.repair()))
    assert again.code == 0, again.said
    after = list_computed(full)
    assert {file: after[file] for file in before} == before, "something was computed twice"
    new = {str(file) for file in after.keys() - before.keys()}
    missing = ("gemma", "RTE.zip", "glue-rte", CRASHING)
    assert {word for file in new for word in missing if word in file} == set(missing)
    assert not [file for file in new if not any(word in file for word in missing)]
    assert list_shown(full) == shown, "something was not shown before"
    notes = [note for paper in PAPERS for note in read_notes(full, paper).values()]
    assert not [note for note in notes if note.startswith("not run: ")]
    assert not (full.results / "unfinished.json").exists()
