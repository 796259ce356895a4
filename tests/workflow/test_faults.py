"""What breaks under a running workflow: one line says it, earlier results stay, and the next call mends it."""

import subprocess
from pathlib import Path

import pytest

from tests.disks import mounted
from tests.workflow.projects import Project

FIRST, SECOND = (f"scan-around-right/{name}/seed-1" for name in ("transformer/default", "sq-transformer/sal"))


def scores(run: str) -> str:
    return f"results/demo/runs/{run}/eval/scores.csv"


def contents(folder: Path) -> dict[Path, bytes]:
    """The results of runs and data under a folder."""
    kept = {"runs", "data"}
    return {
        path: path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and kept & set(path.relative_to(folder).parts)
    }


@pytest.fixture
def small_disk(project: Project):
    """results/ on a file system of its own, of 40 MB."""
    with mounted(project.root / "results", 40):
        yield project.root / "results"


@pytest.mark.faults
def test_a_full_disk(project: Project, small_disk: Path, finished_demo: Path):
    assert project.reproduce(scores(FIRST)).returncode == 0
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
    done = project.reproduce(scores(SECOND))
    assert done.returncode == 0, done.stderr
    for run in (FIRST, SECOND):
        assert (project.root / scores(run)).read_bytes() == (finished_demo / scores(run)).read_bytes()


@pytest.mark.faults
def test_a_folder_that_cannot_be_written(project: Project, small_disk: Path):
    assert project.reproduce("results/demo/data/scan-around-right/dataset.json").returncode == 0
    before = contents(small_disk)
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    done = project.reproduce(scores(FIRST))
    assert done.returncode == 1
    assert "Read-only file system" in done.stderr and "Traceback" not in done.stderr
    assert contents(small_disk) == before
    subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)
    assert project.reproduce(f"results/demo/runs/{FIRST}/run.json").returncode == 0


TABLE = "results/demo/tables/sq_transformer/table1.csv"
PROMPTS = "results/demo/runs/idm/gpt2-small/carma/seed-1/interventions"
CODES = "results/demo/analyses/sq_transformer/source-codes"


@pytest.mark.quick_faults
@pytest.mark.parametrize(
    ("file", "reader", "said"),
    [
        (scores(FIRST), TABLE, f"is not what was written; delete {Path(scores(FIRST)).parent}"),
        (f"results/demo/runs/{FIRST}/eval/predictions.parquet", TABLE, "is not what was written; delete"),
        (f"results/demo/runs/{FIRST}/run.json", scores(FIRST), "not valid JSON"),
        (f"{PROMPTS}/scores.csv", "results/demo/tables/carma/table-cap.csv", "is not what was written; delete"),
        (f"{CODES}/analysis.json", "results/demo/tables/sq_transformer/table-codes.csv", "not valid JSON"),
    ],
    ids=["scores", "predictions", "run", "interventions", "analysis"],
)
def test_a_results_file_cut_in_half(demo: Project, file: str, reader: str, said: str):
    """It is refused by what reads it; deleted with what lies beside it, it is made again, and so are its readers."""
    path, results = demo.root / file, demo.root / reader
    beside = {name: name.read_bytes() for name in path.parent.iterdir() if name.suffix in (".csv", ".parquet")}
    shown, whole = results.read_bytes(), path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    done = demo.reproduce("--forcerun", reader, "--", reader)
    assert done.returncode == 1
    assert file in done.stderr and said in done.stderr and "Traceback" not in done.stderr

    for name in path.parent.iterdir():
        if name.is_file():
            name.unlink()
    done = demo.reproduce(reader)
    assert done.returncode == 0, done.stderr
    assert results.read_bytes() == shown
    assert {name: name.read_bytes() for name in beside} == beside


@pytest.mark.quick_faults
def test_a_broken_checkpoint(demo: Project):
    """It is refused by its scoring; deleted, the run is trained again to the same scores."""
    folder = demo.root / "results/demo/runs" / FIRST
    whole = (folder / "eval/scores.csv").read_bytes()
    weights = folder / "checkpoint/model.safetensors"
    content = weights.read_bytes()
    weights.write_bytes(content[: len(content) // 2])
    for path in (folder / "eval").iterdir():
        path.unlink()
    done = demo.reproduce(scores(FIRST))
    assert done.returncode == 1
    assert "model.safetensors" in done.stderr and "Traceback" not in done.stderr

    weights.unlink()
    done = demo.reproduce(scores(FIRST))
    assert done.returncode == 0, done.stderr
    assert (folder / "eval/scores.csv").read_bytes() == whole
    assert weights.read_bytes() == content
