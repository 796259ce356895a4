"""Faults during a run: one line reports them, earlier results stay, and the next call repairs them."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.disks import mounted
from tests.workflow.projects import SCORES, TRAINED, Project, add_demo, copied, plain_environment

FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
FIRST, SECOND = (
    f"scan-jump-x2/{name}/seed-1" for name in ("transformer/default", "sq-transformer/sal")
)


def scores(run: str) -> str:
    return f"results/demo/runs/{run}/eval/scores.csv"


def contents(folder: Path) -> dict[Path, bytes]:
    """The results of runs and data under a folder."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {
        path: path.read_bytes()
        for path in files
        if {"runs", "data"} & set(path.relative_to(folder).parts)
    }


@pytest.fixture
def small_disk(project: Project):
    """results/ on a file system of its own, of 40 MB."""
    with mounted(project.root / "results", 40):
        yield project.root / "results"


@pytest.mark.faults
def test_a_full_disk(project: Project, small_disk: Path, finished_demo: Path):
    project.make(scores(FIRST))
    before = contents(small_disk)
    filler = small_disk / "filler"
    with open(filler, "wb") as stream:
        while True:
            try:
                stream.write(bytes(65536))
                stream.flush()
            except OSError:
                break
    with open(filler, "r+b") as stream:
        stream.truncate(filler.stat().st_size - 60_000)  # room for logs, not for weights
    done = project.reproduce(scores(SECOND))
    assert done.returncode == 1
    assert "No space left on device" in done.stderr and "Traceback" not in done.stderr
    assert {path: path.read_bytes() for path in before} == before

    filler.unlink()
    project.make(scores(SECOND))
    for run in (FIRST, SECOND):
        assert (project.root / scores(run)).read_bytes() == (
            finished_demo / scores(run)
        ).read_bytes()


@pytest.mark.faults
def test_a_folder_that_cannot_be_written(project: Project, small_disk: Path):
    project.make("results/demo/data/scan-around-right/dataset.json")
    before = contents(small_disk)
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    done = project.reproduce(scores(FIRST))
    assert done.returncode == 1
    assert "Read-only file system" in done.stderr and "Traceback" not in done.stderr
    assert contents(small_disk) == before
    subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)
    project.make(f"results/demo/runs/{FIRST}/run.json")


TABLES = "results/demo/tables"
PROMPTS = "results/demo/runs/idm/gpt2-small/carma/seed-1/interventions"
CODES = "results/demo/analyses/sq_transformer/source-codes"
MATCHED, TRANSLATING = "scan-jump-x2/lrf/matched/seed-1", "wmt17-en-de/sq-transformer/srl/seed-1"
DAMAGED = "cognition/transformer/default/seed-1"
CHECKPOINT = f"results/demo/runs/{DAMAGED}/checkpoint/model.safetensors"
# What is cut in half, what reads it, and what that says. Tables are tested by the predictions of
# their runs.
HALVES = {
    "scores": (
        scores(FIRST),
        f"{TABLES}/sq_transformer/table1.csv",
        "does not match its checksum; delete",
    ),
    "predictions": (
        f"results/demo/runs/{MATCHED}/eval/predictions.parquet",
        f"{TABLES}/lrf/table-scan.csv",
        "does not match its checksum; delete",
    ),
    "run": (f"results/demo/runs/{TRANSLATING}/run.json", scores(TRANSLATING), "not valid JSON"),
    "interventions": (
        f"{PROMPTS}/scores.csv",
        f"{TABLES}/carma/table-cap.csv",
        "does not match its checksum; delete",
    ),
    "answers": (
        f"{PROMPTS}/answers.parquet",
        "results/demo/analyses/carma/item-sets/scores.csv",
        "does not match its checksum; delete",
    ),
    "analysis": (
        f"{CODES}/analysis.json",
        f"{TABLES}/sq_transformer/table-codes.csv",
        "not valid JSON",
    ),
}


class Damaged:
    """A finished demo in which these files and a checkpoint are cut in half: called before and
    after their deletion.
    """

    def __init__(self, project: Project):
        self.root = project.root
        self.before = {
            path: path.read_bytes()
            for path in (self.root / "results/demo").rglob("*")
            if path.is_file()
        }
        for file in (CHECKPOINT, *(file for file, _, _ in HALVES.values())):
            whole = self.before[self.root / file]
            (self.root / file).write_bytes(whole[: len(whole) // 2])
        empty(self.root / f"results/demo/runs/{DAMAGED}/eval")
        readers = [reader for _, reader, _ in HALVES.values()]
        targets = ("--", *readers, scores(DAMAGED))
        self.refused = project.reproduce("--forcerun", *readers, *targets)
        for file, _, _ in HALVES.values():
            empty((self.root / file).parent)
        (self.root / CHECKPOINT).unlink()
        self.mended = project.reproduce(*targets)

    def assert_as_before(self, *files: Path) -> None:
        for file in files:
            assert file.read_bytes() == self.before[file], file


def empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_file():
            path.unlink()


@pytest.fixture(scope="module")
def damaged(finished_demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Damaged:
    project = copied(tmp_path_factory.mktemp("damaged"))
    add_demo(project)
    with plain_environment():
        return Damaged(project)


@pytest.mark.quick_faults
def test_what_is_damaged_is_refused_and_made_again_when_it_is_deleted(damaged: Damaged):
    """Nothing else is refused, and every refusal is a line, not a traceback."""
    assert damaged.refused.returncode == 1 and "Traceback" not in damaged.refused.stderr
    assert f"{len(HALVES) + 1} failed" in damaged.refused.stderr
    assert damaged.mended.returncode == 0, damaged.mended.stderr


@pytest.mark.quick_faults
@pytest.mark.parametrize("name", HALVES)
def test_a_results_file_cut_in_half(damaged: Damaged, name: str):
    """Jobs that read it refuse it; deleted with its folder, it is recreated, and jobs that read it
    are rerun.
    """
    file, reader, said = HALVES[name]
    assert any(file in line and said in line for line in damaged.refused.stderr.splitlines()), (
        damaged.refused.stderr
    )
    folder = (damaged.root / file).parent
    beside = [
        path
        for path in damaged.before
        if path.parent == folder and path.suffix in (".csv", ".parquet")
    ]
    damaged.assert_as_before(damaged.root / reader, *beside)


@pytest.mark.quick_faults
def test_a_broken_checkpoint(damaged: Damaged):
    """It is refused by its scoring; deleted, the run is trained again to the same scores."""
    assert any(
        "error: " in line and "model.safetensors" in line
        for line in damaged.refused.stderr.splitlines()
    )
    damaged.assert_as_before(damaged.root / CHECKPOINT, damaged.root / scores(DAMAGED))


@pytest.mark.faults
@pytest.mark.skipif(
    not FAKETIME.exists(), reason="libfaketime, which sets the clock of a process, is not installed"
)
def test_a_clock_that_was_set_back(project: Project):
    """The job whose inputs are from the future fails and says so; by a right clock the next call
    makes the results.
    """
    project.make(SCORES)
    with project.edited("catalogue/methods/seq2seq.yaml") as methods:
        methods["transformer"]["variants"]["default"]["training"] = {"learning_rate": 0.00123}
    done = project.reproduce(
        SCORES, env=os.environ | {"LD_PRELOAD": str(FAKETIME), "FAKETIME": "-1d"}
    )
    assert done.returncode == 1
    assert "could indicate a clock skew" in done.stderr and "Traceback" not in done.stderr
    project.make(SCORES)
    assert (
        json.loads((project.root / TRAINED).read_text())["spec"]["training"]["learning_rate"]
        == 0.00123
    )
    assert "Nothing to be done" in project.make(SCORES).stderr
