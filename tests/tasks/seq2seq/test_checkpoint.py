"""A checkpoint says by itself what model it is of."""

import shutil
from pathlib import Path

import pytest
import torch

from workflow_scripts.common.errors import UserError
from workflow_scripts.tasks.seq2seq.checkpoint import load_checkpoint, load_run


def test_a_checkpoint_needs_neither_data_nor_run(trained: Path, tmp_path: Path):
    shutil.copytree(trained / "out/checkpoint", tmp_path / "anywhere")
    model, vocabulary = load_checkpoint(tmp_path / "anywhere")
    same, same_vocabulary, _ = load_run(trained / "out", trained / "data")
    assert vocabulary == same_vocabulary and not model.training
    source, target_in = torch.tensor([[4, 5, 2]]), torch.tensor([[2, 4]])
    assert torch.equal(model(source, target_in).logits, same(source, target_in).logits)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("config.json", "{}", "config.json is not what train writes"),
        ("config.json", None, "config.json does not exist"),
        ("vocabulary.json", "[]", "vocabulary.json is not a vocabulary"),
        ("model.safetensors", "no weights", "model.safetensors cannot be read"),
        ("model.safetensors", None, "model.safetensors does not exist"),
    ],
)
def test_what_is_broken_is_named(trained: Path, tmp_path: Path, name: str, content: str | None, said: str):
    folder = shutil.copytree(trained / "out/checkpoint", tmp_path / "checkpoint")
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_text(content)
    with pytest.raises(UserError, match=said) as error:
        load_checkpoint(folder)
    assert "\n" not in str(error.value)
