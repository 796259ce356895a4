"""One trained toy run for the tests of this folder."""

import json
from pathlib import Path

import pytest

from tests.training.toy import here, toy_spec, write_data


@pytest.fixture(scope="session")
def trained(tmp_path_factory) -> Path:
    """A folder with data/ and out/: a run that is right on some test sentences and wrong on others."""
    folder = tmp_path_factory.mktemp("trained")
    write_data(folder / "data")
    (folder / "spec.json").write_text(json.dumps(toy_spec(max_steps=150)))
    options = {"spec": "spec.json", "data": "data", "out": "out", "state": "state"}
    arguments = (part for name, file in options.items() for part in (f"--{name}", folder / file))
    assert here("train", *arguments, "--device", "cpu") == 0
    return folder
