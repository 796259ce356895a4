"""Answers that a killed job has saved: which of them the next job takes."""

import time
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.training.toy import flip_bit
from workflow_scripts.common.files import read_json, write_json
from workflow_scripts.common.system import JobCosts, measure_costs
from workflow_scripts.interventions.saved_answers import SavedAnswers

IDENTITY = {"fingerprint": "a", "device": "cpu"}


def answer(saved: SavedAnswers, numbers: dict[str, int]) -> list[str]:
    """Go through the passes `numbers`, name -> answer; returns those that were computed."""
    computed = []

    def compute(name: str) -> Tensor:
        computed.append(name)
        return torch.full((2, 3), numbers[name])

    for name, number in numbers.items():
        found = saved.find_or_compute(name, lambda name=name: compute(name))
        assert found.dtype == torch.int64 and found.tolist() == [[number] * 3] * 2
    return computed


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two saves of one pass each."""
    folder = tmp_path / "saved/answers"
    assert answer(SavedAnswers(folder, IDENTITY, 0), {"cap/0": 4, "unchanged": 5}) == [
        "cap/0",
        "unchanged",
    ]
    assert len(list(folder.iterdir())) == 2 + 2
    return folder


def test_what_was_saved_is_not_computed_again(folder: Path):
    saved = SavedAnswers(folder, IDENTITY, 0)
    assert saved.answers.keys() == {"cap/0", "unchanged"}
    assert answer(saved, {"cap/0": 4, "unchanged": 5, "later": 6}) == ["later"]
    assert SavedAnswers(folder, IDENTITY, 0).answers.keys() == {"cap/0", "unchanged", "later"}


def test_the_costs_of_the_processes_before_are_kept(folder: Path):
    """Of three processes; the second and the third have continued."""
    first = read_json(folder / "costs.json")
    assert first["resumed"] == 0
    write_json(folder / "costs.json", first | {"seconds": 5000.0, "started": "2026-01-01"})
    saved = SavedAnswers(folder, IDENTITY, 0)
    assert saved.costs_before == JobCosts(**read_json(folder / "costs.json"))
    answer(saved, {"later": 6})
    second = read_json(folder / "costs.json")
    assert (second["resumed"], second["started"]) == (1, "2026-01-01")
    assert 5000 < second["seconds"] < 5000 + 3600
    third = measure_costs(SavedAnswers(folder, IDENTITY, 0).costs_before)
    assert third.resumed == 2 and third.seconds > second["seconds"]
    assert third.cpu_seconds > second["cpu_seconds"] > first["cpu_seconds"] > 0
    assert third.gpu_seconds == 0
    # Without answers to continue from, a job begins again, and so do its costs.
    assert SavedAnswers(folder, IDENTITY | {"device": "cuda"}, 0).costs_before is None


def test_costs_that_a_power_cut_has_emptied_are_unknown_and_the_answers_are_kept(folder: Path):
    (folder / "costs.json").write_text("")
    saved = SavedAnswers(folder, IDENTITY, 0)
    assert saved.costs_before is None
    assert answer(saved, {"cap/0": 4, "unchanged": 5}) == []


def test_without_a_whole_identity_all_is_computed_again(folder: Path):
    (folder / "identity.json").write_text("")
    assert not SavedAnswers(folder, IDENTITY, 0).answers


def test_the_time_on_a_gpu_is_that_of_the_processes_that_computed_there():
    on_gpu = measure_costs(is_on_gpu=True)
    assert on_gpu.gpu_seconds == on_gpu.seconds > 0
    assert measure_costs(on_gpu).gpu_seconds == on_gpu.gpu_seconds
    assert measure_costs(on_gpu, is_on_gpu=True).gpu_seconds > on_gpu.gpu_seconds


@pytest.mark.parametrize("key", IDENTITY)
def test_answers_of_another_model_or_device_are_deleted(folder: Path, key: str):
    other = IDENTITY | {key: "other"}
    assert not SavedAnswers(folder, other, 60).answers
    assert not folder.exists()


def test_a_damaged_file_is_computed_again(folder: Path):
    damaged, whole = sorted(folder.glob("answers-*"))
    flip_bit(damaged)
    lost = {"cap/0", "unchanged"} - SavedAnswers(folder, IDENTITY, 60).answers.keys()
    assert len(lost) == 1
    assert not damaged.exists() and whole.exists()
    saved = SavedAnswers(folder, IDENTITY, 60)
    assert answer(saved, {"cap/0": 4, "unchanged": 5}) == [*lost]


def test_half_of_a_file_that_a_kill_left_is_ignored(folder: Path):
    (folder / ".answers.part").write_bytes(b"half")
    saved = SavedAnswers(folder, IDENTITY, 0)
    assert answer(saved, {"cap/0": 4, "unchanged": 5}) == []
    saved.remove()
    assert not folder.exists()


def test_answers_of_an_unknown_model_are_deleted(folder: Path):
    (folder / "identity.json").unlink()
    assert not SavedAnswers(folder, IDENTITY, 60).answers
    assert not folder.exists()


def test_a_short_job_writes_nothing(tmp_path: Path):
    answer(SavedAnswers(tmp_path / "answers", IDENTITY, 60), {"cap/0": 1, "unchanged": 2})
    assert not (tmp_path / "answers").exists()


def test_the_passes_of_an_interval_are_one_file(tmp_path: Path):
    saved = SavedAnswers(tmp_path, IDENTITY, 0.2)
    answer(saved, {"cap/0": 1, "cap/1": 2})
    time.sleep(0.2)
    answer(saved, {"cap/2": 3, "cap/3": 4})
    assert len(list(tmp_path.glob("answers-*"))) == 1
    assert SavedAnswers(tmp_path, IDENTITY, 60).answers.keys() == {"cap/0", "cap/1", "cap/2"}


def test_files_of_others_stay(folder: Path):
    (folder / "notes.txt").write_text("mine")
    SavedAnswers(folder, IDENTITY, 60).remove()
    assert [file.name for file in folder.iterdir()] == ["notes.txt"]
