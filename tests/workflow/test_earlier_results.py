"""Results are kept before their jobs run again, and taken back when their settings return."""

import argparse
import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import pytest

from tests.workflow.projects import ROOT, RUN, SCORES, TRAINED, Project
from workflow_scripts.commands import clean
from workflow_scripts.workflow.earlier_results import (
    MODE,
    EarlierResults,
    Result,
    SnakemakeRecords,
    list_earlier_folders,
    list_kept,
    remove_oldest,
    restore_earlier,
    select_needed,
)
from workflow_scripts.workflow.jobs import JobInputs
from workflow_scripts.workflow.snakemake_job import SnakemakeJob

FOLDERS = {
    "candidates": "results/demo/candidates/idm",
    "prepare": "results/demo/data/idm",
}
OUTPUTS = {
    "candidates": [
        f"{FOLDERS['candidates']}/candidates.{ending}" for ending in ("parquet", "json")
    ],
    "prepare": [f"{FOLDERS['prepare']}/dataset.json"],
}
DATA = OUTPUTS["prepare"][0]
WILDCARDS = {"scale": "demo", "task": "idm"}


@dataclass
class Settings:
    """The present settings of the jobs; EarlierResults asks JobInputs for them."""

    fingerprints: dict[str, str] = field(
        default_factory=lambda: {"candidates": "A", "prepare": "A"}
    )

    def list_identifying_params(self, rule: str, wildcards: dict[str, str]) -> list[Any]:
        assert wildcards == WILDCARDS
        return [self.fingerprints[rule]]


@pytest.fixture(autouse=True)
def folder(request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty folder for tests without a project."""
    if "project" not in request.fixturenames and "made" not in request.fixturenames:
        monkeypatch.chdir(tmp_path)
    yield


def make(rule: str, fingerprint: str, content: str) -> None:
    """What a job writes, and Snakemake's record of it. Earlier outputs are deleted before."""
    inputs = [DATA] if rule == "candidates" else []
    for output in OUTPUTS[rule]:
        Path(output).unlink(missing_ok=True)
        Path(output).parent.mkdir(parents=True, exist_ok=True)
        Path(output).write_text(content)
    record = Path(FOLDERS[rule]) / "record.json"
    record.unlink(missing_ok=True)
    record.write_text(json.dumps({"fingerprint": fingerprint}))
    checksums = {name: f"sha256:{sha256(Path(name).read_bytes()).hexdigest()}" for name in inputs}
    recorded = {"params": [repr(fingerprint)], "input": inputs, "input_checksums": checksums}
    records = dict.fromkeys(OUTPUTS[rule], recorded)
    SnakemakeRecords().finish(Result(rule, WILDCARDS, records, OUTPUTS[rule]))


def keep(*rules: str, limit: float = 1e9, reason: str = "Params have changed") -> None:
    """What happens before jobs run again."""
    jobs = []
    for rule in rules:
        jobs.append(SnakemakeJob(rule, WILDCARDS, outputs=OUTPUTS[rule], reason=reason))
    EarlierResults(limit).keep_stale(jobs)


def restore(settings: Settings, **options: bool) -> int:
    results = EarlierResults(1e9)
    return results.restore_fitting(settings, lambda _: True, **options)  # type: ignore[arg-type]


def read(rule: str) -> tuple[str, list[str]]:
    """The content of a result, and the parameters that Snakemake has recorded of it."""
    result = SnakemakeRecords().read(rule, WILDCARDS, OUTPUTS[rule])
    assert result
    return Path(OUTPUTS[rule][0]).read_text(), result.params


def test_a_result_is_taken_back_and_the_other_kept_in_its_place():
    make("prepare", "A", "first")
    keep("prepare")
    (kept,) = list_kept()
    assert (kept.folder.files / "dataset.json").samefile(DATA)  # it takes no room yet
    make("prepare", "B", "second")
    assert restore(Settings({"prepare": "B"})) == 0
    before = os.stat(DATA).st_mtime_ns
    assert restore(Settings({"prepare": "A"})) == 1
    assert read("prepare") == ("first", ["'A'"])
    assert json.loads(Path(DATA).with_name("record.json").read_text()) == {"fingerprint": "A"}
    assert os.stat(DATA).st_mtime_ns > before  # so Snakemake compares what was made of the second
    (kept,) = list_kept()
    assert kept.result.params == ["'B'"]
    assert restore(Settings({"prepare": "B"})) == 1 and read("prepare") == ("second", ["'B'"])


def test_a_result_that_could_not_be_kept_is_not_replaced():
    make("prepare", "A", "first")
    keep("prepare")
    make("prepare", "B", "second, and larger than what may be kept")
    results = EarlierResults(20)
    settings = Settings({"prepare": "A"})
    assert results.restore_fitting(settings, lambda _: True) == 0  # type: ignore[arg-type]
    assert read("prepare")[0] == "second, and larger than what may be kept"


@pytest.mark.parametrize("has_namesake", [False, True])
def test_a_result_that_touch_has_accepted_is_not_replaced(has_namesake: bool):
    """Its own record is of other code than Snakemake's, so it could not be kept, also where the
    result is kept whose fingerprint it was given.
    """
    if has_namesake:
        make("prepare", "B", "of B")
        keep("prepare")
    make("prepare", "A", "first")
    keep("prepare")
    make("prepare", "B", "second")
    own_record = Path(DATA).with_name("record.json")
    own_record.write_text('{"fingerprint": "of other code"}')
    assert restore(Settings({"prepare": "A"}), is_dry_run=True) == 0
    assert restore(Settings({"prepare": "A"})) == 0
    assert read("prepare") == ("second", ["'B'"]) and "other code" in own_record.read_text()
    assert "'A'" in [param for kept in list_kept() for param in kept.result.params]


def test_a_result_without_snakemakes_records_is_not_replaced():
    """As one that was copied from another folder."""
    make("prepare", "A", "first")
    keep("prepare")
    make("prepare", "B", "second")
    shutil.rmtree(".snakemake/metadata")
    assert restore(Settings({"prepare": "A"}), is_dry_run=True) == 0
    assert restore(Settings({"prepare": "A"})) == 0
    assert Path(DATA).read_text() == "second" and len(list_earlier_folders()) == 1


@pytest.mark.parametrize(
    ("targets", "count"),
    [
        ([], 1),
        (["runs"], 1),
        ([f"{FOLDERS['prepare']}/dataset.json"], 2),
        (["results/small/claims.csv"], 0),
        (["results/downloads/cognition/train.en.json"], 0),
        (["runs", "results/small/claims.csv"], 1),
    ],
)
def test_a_call_takes_back_what_it_is_for(targets: list[str], count: int):
    """A call without a file takes back what its jobs need, here the data; with one, its scale."""
    make("prepare", "A", "first")
    make("candidates", "A", "of first")
    keep("candidates", "prepare")
    make("prepare", "B", "second")
    make("candidates", "B", "of second")
    is_needed = select_needed(targets, lambda: [SnakemakeJob("prepare_large", WILDCARDS)])
    results = EarlierResults(1e9)
    assert results.restore_fitting(Settings(), is_needed) == count  # type: ignore[arg-type]


def test_a_dry_run_removes_nothing(monkeypatch: pytest.MonkeyPatch):
    make("prepare", "A", "first")
    keep("prepare")
    jobs = cast(JobInputs, Settings())
    for mode, left in (("count", 1), ("restore", 0)):
        monkeypatch.setenv(MODE, mode)
        restore_earlier(1.0, jobs, list, list)
        assert len(list_earlier_folders()) == left


@pytest.mark.quick_faults
def test_what_a_killed_process_was_keeping_is_removed():
    """It has links to files of results, whose disk would not be free when these are deleted."""
    make("prepare", "A", "first")
    keep("prepare")
    earlier = list_earlier_folders()[0].path.parent
    write = (
        "import os, sys; from workflow_scripts.common.files import write_atomically\n"
        "with write_atomically(sys.argv[1]) as folder: os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", write, earlier.absolute() / "0123"], cwd=ROOT)
    assert len(list(earlier.iterdir())) == 2
    keep("prepare")
    assert [folder.path for folder in list_earlier_folders()] == list(earlier.iterdir())


def test_of_a_result_whose_weights_were_deleted_the_rest_is_kept_and_files_of_others_stay():
    """docs/reruns.md allows it, as here of one of two outputs; the notes are the user's."""
    make("prepare", "A", "data")
    make("candidates", "A", "first")
    keep("candidates")
    make("candidates", "B", "second")
    deleted, left = map(Path, OUTPUTS["candidates"])
    deleted.unlink()
    notes = left.with_name("my-notes.txt")
    notes.write_text("of mine")
    assert restore(Settings({"prepare": "A", "candidates": "A"})) == 1
    assert read("candidates") == ("first", ["'A'"])
    (kept,) = list_kept()
    assert kept.result.params == ["'B'"]
    assert sorted(kept.entry.files) == [left.name, "record.json"]
    assert notes.read_text() == "of mine"
    assert restore(Settings({"prepare": "A", "candidates": "B"})) == 1
    assert left.read_text() == "second" and not deleted.exists()
    make("candidates", "C", "third")
    assert restore(Settings({"prepare": "A", "candidates": "A"})) == 1
    assert read("candidates") == ("first", ["'A'"])


def test_on_a_full_disk_the_result_that_is_there_stays(monkeypatch: pytest.MonkeyPatch):
    make("prepare", "A", "first")
    keep("prepare")
    make("prepare", "B", "second")

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", fail)
        assert restore(Settings({"prepare": "A"})) == 0
    assert read("prepare") == ("second", ["'B'"])
    (kept,) = list_kept()
    assert kept.result.params == ["'A'"]


def test_a_result_of_other_inputs_does_not_fit():
    make("prepare", "A", "first")
    make("candidates", "A", "of first")
    keep("candidates")
    make("prepare", "A", "second")
    make("candidates", "A", "of second")
    assert restore(Settings()) == 0
    keep("prepare", "candidates")
    make("prepare", "A", "first")
    assert restore(Settings()) == 1 and read("candidates")[0] == "of first"


def test_results_are_taken_back_in_the_order_of_the_data_flow():
    """Of the second, the inputs fit only when the first is back. A dry run counts both."""
    make("prepare", "A", "first")
    make("candidates", "A", "of first")
    keep("candidates", "prepare")
    make("prepare", "B", "second")
    make("candidates", "A", "of second")
    kept = {entry.folder.path for entry in list_kept()}
    assert restore(Settings(), is_dry_run=True) == 2
    assert {entry.folder.path for entry in list_kept()} == kept
    assert read("prepare")[0] == "second"
    assert restore(Settings()) == 2
    assert (read("prepare")[0], read("candidates")[0]) == ("first", "of first")


@pytest.mark.quick_faults
@pytest.mark.parametrize("damage", ["changed", "deleted"])
def test_a_kept_file_that_was_touched_is_not_taken_back(damage: str):
    make("prepare", "A", "first")
    keep("prepare")
    make("prepare", "B", "second")
    (kept,) = list_kept()
    file = kept.folder.files / "dataset.json"
    if damage == "changed":
        file.write_text("other")
    else:
        file.unlink()
    assert restore(Settings()) == 0 and read("prepare")[0] == "second"


@pytest.mark.quick_faults
def test_an_interrupted_return_leaves_a_job_that_runs_again(monkeypatch: pytest.MonkeyPatch):
    make("prepare", "A", "data")
    make("candidates", "A", "first")
    keep("candidates")
    make("candidates", "B", "second")
    replace = os.replace

    def fail_at_the_second(source: Path, target: Path) -> None:
        if Path(target).name == "candidates.parquet":
            raise KeyboardInterrupt
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail_at_the_second)
        with pytest.raises(KeyboardInterrupt):
            restore(Settings())
    # Snakemake reruns what is incomplete, by whichever settings.
    assert SnakemakeRecords().read("candidates", WILDCARDS, OUTPUTS["candidates"]) is None
    assert Path(OUTPUTS["candidates"][1]).read_text() == "first"
    assert restore(Settings()) == 0
    assert restore(Settings({"candidates": "B"})) == 1 and read("candidates")[0] == "second"


def test_what_was_recorded_by_touch_or_is_forced_or_incomplete_is_not_kept():
    make("prepare", "A", "first")
    keep("prepare", reason="Forced execution")
    Path(DATA).with_name("record.json").write_text('{"fingerprint": "of other code"}')
    keep("prepare")
    make("prepare", "A", "first")
    result = SnakemakeRecords().read("prepare", WILDCARDS, OUTPUTS["prepare"])
    assert result
    SnakemakeRecords().start(result)  # as before a job that is then killed
    keep("prepare")
    assert not list_earlier_folders()


def test_the_first_kept_are_removed_first_when_there_are_more_than_the_limit():
    for number in range(4):
        make("prepare", str(number), "x" * 1000)
        keep("prepare", limit=2500)
        for place, kept in enumerate(reversed(list(list_kept()))):
            os.utime(kept.folder.entry, (place, place))
    assert [kept.result.params for kept in list_kept()] == [["'3'"], ["'2'"]]
    make("prepare", "large", "x" * 3000)
    keep("prepare", limit=2500)
    make("prepare", "none", "x")
    keep("prepare", limit=0)
    assert [kept.result.params for kept in list_kept()] == [["'3'"], ["'2'"]]
    removed, size = remove_oldest(limit=1500)
    assert removed == 1 and 1000 <= size <= 1100


def test_clean_removes_what_is_kept(capsys: pytest.CaptureFixture[str]):
    for fingerprint in ("A", "B"):
        make("prepare", fingerprint, fingerprint)
        keep("prepare")
    parser = argparse.ArgumentParser()
    clean.add_arguments(parser)
    clean.main(parser.parse_args(["--earlier"]))
    assert capsys.readouterr().out.startswith("2 earlier results removed: ")
    assert not list_earlier_folders()


def change_rate(project: Project, rate: float | None) -> None:
    with project.edited("catalogue/methods/seq2seq.yaml") as methods:
        variant = methods["transformer"]["variants"]["default"]
        variant.pop("training", None)
        if rate is not None:
            variant["training"] = {"learning_rate": rate}


@pytest.mark.faults
def test_an_edit_that_is_undone_trains_nothing(made: Project):
    """Of a setting, and of the code of the data, by which all is rerun."""
    first = {name: (made.root / name).read_bytes() for name in (TRAINED, SCORES)}
    data = made.root / "workflow_scripts/data/datasets/scan.py"
    code = data.read_text()
    change_rate(made, 0.00123)
    made.change_code("data/datasets/scan.py")
    assert "3 jobs done" in made.make(SCORES).stderr
    second = {name: (made.root / name).read_bytes() for name in first}
    assert second[TRAINED] != first[TRAINED]

    change_rate(made, None)
    data.write_text(code)
    dry = made.make("-n", SCORES)
    assert (
        "3 earlier results fit; ./reproduce takes them back first, and runs fewer jobs than -n lists"
        in dry.stderr
    )
    done = made.make(SCORES)
    assert "3 earlier results fit and are taken back" in done.stderr
    assert "done in" not in done.stderr, done.stderr
    assert {name: (made.root / name).read_bytes() for name in first} == first
    assert made.planned(SCORES) == set()
    assert made.command("check").returncode == 0

    change_rate(made, 0.00123)
    made.change_code("data/datasets/scan.py")
    assert "3 earlier results fit and are taken back" in made.make(SCORES).stderr
    assert {name: (made.root / name).read_bytes() for name in first} == second


@pytest.mark.faults
def test_what_was_made_of_the_other_result_is_made_again(made: Project):
    """A score that was not kept, because it was deleted, is computed from the training that is back."""
    first = (made.root / SCORES).read_bytes()
    change_rate(made, 0.00123)
    made.make(SCORES)
    for kept in (made.root / "results/demo/earlier").glob("*/entry.json"):
        if json.loads(kept.read_text())["rule"] == "evaluate":
            kept.unlink()
    change_rate(made, None)
    done = made.make(SCORES)
    assert "1 earlier result fits and is taken back" in done.stderr
    assert "1 job done" in done.stderr
    assert (made.root / SCORES).read_bytes() == first
    assert RUN in (made.root / TRAINED).read_text()


@pytest.mark.faults
def test_a_call_for_other_results_takes_nothing_back(made: Project):
    """Of another scale, of another paper, and of downloads."""
    change_rate(made, 0.00123)
    made.make(SCORES)
    change_rate(made, None)
    fit = "2 earlier results fit; ./reproduce takes them back first"
    assert fit in made.make("-n", "runs", "--papers", "sq_transformer").stderr
    for words in (
        ["results/downloads/cognition/train.en.json", "--scale", "small"],
        ["runs", "--papers", "carma"],
        ["results/small/data/scan-jump-x2/dataset.json"],
    ):
        assert "earlier result" not in made.make("-n", *words).stderr, words
