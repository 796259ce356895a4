"""One trained toy run for the tests of this folder."""

from pathlib import Path

import pytest

from tests.training.toy import run_main, toy_spec, write_data


@pytest.fixture(scope="session")
def trained(tmp_path_factory) -> Path:
    """A folder with data/ and out/: a run that is right on some test sentences and wrong on others."""
    folder = tmp_path_factory.mktemp("trained")
    write_data(folder / "data")
    places = {name: folder / name for name in ("data", "out", "state")}
    assert run_main("train", spec=toy_spec(max_steps=150), device="cpu", **places) == 0
    return folder
