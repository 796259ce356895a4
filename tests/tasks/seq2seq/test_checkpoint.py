"""A checkpoint says by itself what model it is of."""

import shutil
from pathlib import Path

import pytest
import torch

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import write_json
from workflow_scripts.tasks.seq2seq.checkpoint import load_checkpoint, load_run


def test_a_checkpoint_needs_neither_data_nor_run(trained: Path, tmp_path: Path):
    shutil.copytree(trained / "out/checkpoint", tmp_path / "anywhere")
    model, vocabulary = load_checkpoint(tmp_path / "anywhere")
    same, same_vocabulary, _ = load_run(trained / "out", trained / "data")
    assert vocabulary == same_vocabulary and not model.training
    source, target_in = torch.tensor([[4, 5, 2]]), torch.tensor([[2, 4]])
    assert torch.equal(model(source, target_in).logits, same(source, target_in).logits)


@pytest.mark.parametrize(
    "content", [[], {}, {"model": None}, {"model": {"layers": 1}}, {"model": {"name": 1}}]
)
def test_a_checkpoint_that_names_no_model_is_one_line(
    trained: Path, tmp_path: Path, content: object
):
    shutil.copytree(trained / "out/checkpoint", tmp_path / "anywhere")
    write_json(tmp_path / "anywhere/config.json", content)
    with pytest.raises(
        UserError, match=r"config.json is not what train writes; train the run again"
    ):
        load_checkpoint(tmp_path / "anywhere")
