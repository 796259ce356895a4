"""Curves for TensorBoard: the values of training.csv, in a training that ends with the same bytes
as without them.

Tests that need the package skip without it: `pip install tensorboard`.
"""

import json
import os
import sys
from pathlib import Path

import pytest

from tests.training.toy import toy_spec, write_data
from workflow_scripts.__main__ import main
from workflow_scripts.training.history import read_history

RUN = "toy/transformer/default/seed-3"


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with data/ and spec.json."""
    monkeypatch.delenv("RECOMPOSE_TENSORBOARD", raising=False)
    write_data(tmp_path / "data")
    (tmp_path / "spec.json").write_text(
        json.dumps(toy_spec(max_steps=20, warmup_steps=5, validate_every=10, log_every=5))
    )
    return tmp_path


def train(toy: Path, out: str) -> dict[str, bytes]:
    """Train to the end; return the files."""
    places = [
        f"--{name}={toy / file}"
        for name, file in (("spec", "spec.json"), ("data", "data"), ("out", out))
    ]
    assert main(["train", *places, "--device", "cpu", "--progress", "lines"]) == 0
    names = ("run.json", "training.csv", "checkpoint/model.safetensors")
    return {name: (toy / out / name).read_bytes() for name in names}


def test_events_have_the_values_of_the_training_and_change_nothing(toy: Path, monkeypatch, capsys):
    pytest.importorskip("tensorboard", reason="the extra `tensorboard` is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    plain = train(toy, "plain")
    monkeypatch.setenv("RECOMPOSE_TENSORBOARD", str(toy / "curves"))
    assert train(toy, "watched") == plain
    assert "warning: no live curves" not in capsys.readouterr().err
    events = EventAccumulator(str(toy / "curves" / RUN)).Reload()
    history = read_history(toy / "watched/training.csv")
    for tag, name in (("loss", "loss"), ("exact_match", "valid_exact_match")):
        logged = [(step, value) for step, one, value in history if one == name]
        found = [(event.step, event.value) for event in events.Scalars(tag)]
        assert [step for step, _ in found] == [step for step, _ in logged] and len(found) > 1
        assert [value for _, value in found] == pytest.approx(
            [value for _, value in logged], rel=1e-6
        )


def test_without_the_package_or_a_folder_to_write_the_training_continues(
    toy: Path, monkeypatch, capsys
):
    plain = train(toy, "plain")
    (toy / "file").touch()
    for number, (place, package) in enumerate(
        [(toy / "file/curves", True), (toy / "curves", False)]
    ):
        if not package:
            for name in {
                "tensorboard",
                *(name for name in sys.modules if name.startswith("tensorboard.")),
            }:
                monkeypatch.setitem(sys.modules, name, None)  # as where it is not installed
        monkeypatch.setenv("RECOMPOSE_TENSORBOARD", str(place))
        capsys.readouterr()
        assert train(toy, f"out{number}") == plain
        warnings = [line for line in capsys.readouterr().err.splitlines() if "live curves" in line]
        assert len(warnings) == 1 and f"{RUN}: warning: no live curves in {place} (" in warnings[0]
    assert not (toy / "curves").exists()


def test_a_full_disk_ends_the_curves_and_not_the_training(
    toy: Path, monkeypatch, capsys, small_disk: Path
):
    pytest.importorskip("tensorboard", reason="the extra `tensorboard` is not installed")
    plain, disk = train(toy, "plain"), os.statvfs(small_disk)
    (small_disk / "filler").write_bytes(bytes(disk.f_bavail * disk.f_frsize))
    monkeypatch.setenv("RECOMPOSE_TENSORBOARD", str(small_disk))
    assert train(toy, "watched") == plain
    assert "No space left on device" in capsys.readouterr().err
