"""What an analysis reads of a run: the weights that it asks for."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.analyses.small_runs import add_run
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_file, read_json, write_json


def test_the_weights_that_a_readout_names(tmp_path: Path) -> None:
    """Those of another seed, so that they differ; weights that were not kept are refused."""
    run, other = (
        add_run(tmp_path, f"scan-complexity-1x/transformer/default/seed-{seed}") for seed in (1, 2)
    )
    with pytest.raises(
        UserError, match=r"seed-1 did not keep the weights 'first'; it has: in_distribution, last"
    ):
        replace(run, readout="first").load()
    last = run.files.weights_at("last")
    shutil.copy(other.files.weights, last)
    manifest = read_json(run.files.manifest)
    manifest["files"]["checkpoint/last.safetensors"] = hash_file(last)
    write_json(run.files.manifest, manifest)
    at_last = replace(run, readout="last")
    for wanted, file in ((run, run.files.weights), (at_last, other.files.weights)):
        model, _ = wanted.load()
        weights = load_file(file)
        assert all(torch.equal(model.state_dict()[name], weights[name]) for name in weights)
    name = next(iter(weights))
    assert not torch.equal(load_file(run.files.weights)[name], weights[name])
