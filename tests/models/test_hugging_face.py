"""Folders with models of the transformers library."""

import io
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import write_json
from workflow_scripts.models.causal_lm.model import load_causal_lm
from workflow_scripts.models.hugging_face import load_pretrained_config, load_tokenizer


def test_padding_and_truncation_in_the_file_of_a_tokenizer_are_not_taken(tmp_path: Path):
    """Models of sentences come with both: padding would count as words, and texts be cut."""
    tokenizer = Tokenizer(WordLevel({"[PAD]": 0, "a": 1, "b": 2}, unk_token="[PAD]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.enable_padding(length=8)
    tokenizer.enable_truncation(3)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    assert load_tokenizer(tmp_path).encode("a b a b b").ids == [1, 2, 1, 2, 2]


@pytest.mark.parametrize("model_type", ["of_its_own", "llama"])
def test_code_in_the_folder_of_a_model_is_not_run(
    model_type: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The library asks whether to run it, and here the answer would be yes."""
    ran = tmp_path / "ran"
    folder = tmp_path / "model"
    folder.mkdir()
    auto_map = {"AutoConfig": "conf.OwnConfig", "AutoModelForCausalLM": "conf.OwnModel"}
    write_json(folder / "config.json", {"model_type": model_type, "auto_map": auto_map})
    (folder / "tokenizer.json").write_text("{}")
    (folder / "conf.py").write_text(
        "from pathlib import Path\n"
        "from transformers import PretrainedConfig\n"
        f"Path({str(ran)!r}).touch()\n"
        "class OwnConfig(PretrainedConfig):\n"
        f"    model_type = {model_type!r}\n"
    )
    monkeypatch.setattr("sys.stdin", io.StringIO("y\ny\n"))
    with pytest.raises(UserError):
        load_causal_lm(folder, "llama")
    if model_type == "of_its_own":
        with pytest.raises(ValueError, match="trust_remote_code"):
            load_pretrained_config(folder)
    assert not ran.exists()
