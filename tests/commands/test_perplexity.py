"""The command `perplexity` on a small Llama: what it prints, and what it refuses."""

import math
import re
from pathlib import Path

import pytest
import torch

from tests.models.causal_lm.test_gguf_model import VALUES, converted, llama, store
from workflow_scripts.__main__ import main
from workflow_scripts.models.hugging_face import load_tokenizer

assert llama  # a fixture
TEXT = " = the = \n \n the the , the 2 @-@ 4 . \n"
PLAIN = "= the =\n\nthe the, the 2-4."


@pytest.fixture
def folder(tmp_path, llama) -> Path:
    (tmp_path / "text.txt").write_text(TEXT)
    # A line end is one of the tokens here: \u010a.
    values = VALUES | {
        "tokenizer.ggml.tokens": [
            *VALUES["tokenizer.ggml.tokens"][:-4],
            "\u010a",
            "\u0120",
            "he",
            "the",
        ]
    }
    values |= {"tokenizer.ggml.merges": ["h e", "t he"]}
    return converted(tmp_path / "model", values, store(llama))


def run(folder: Path, *more: str) -> int:
    return main(
        [
            "perplexity",
            str(folder),
            str(folder.parent / "text.txt"),
            "--progress",
            "none",
            "--device",
            "cpu",
            *more,
        ]
    )


def test_it_prints_the_perplexity_per_token_and_per_word(folder, llama, capsys):
    assert run(folder) == 0
    ids = torch.tensor(load_tokenizer(folder).encode(PLAIN).ids)
    with torch.no_grad():
        nats = float(
            torch.nn.functional.cross_entropy(
                llama(ids[None]).logits[0, :-1], ids[1:], reduction="sum"
            )
        )
    words = 3 + 8 + 3  # and the ends of three lines
    said = capsys.readouterr().out
    numbers = [float(number) for number in re.findall(r"^([\d.]+) per", said, re.MULTILINE)]
    count = len(ids) - 1
    assert numbers == [
        pytest.approx(math.exp(nats / count), rel=1e-3),
        pytest.approx(math.exp(nats / words), rel=1e-3),
    ]
    assert (
        f"{count} tokens of the whole text, windows of 1024 every 1024" in said
        and f"{words} words" in said
    )


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--context", "1"], "--context is 1 and --stride 1"),
        (["--context", "8", "--stride", "9"], "--context is 8 and --stride 9"),
        (["--stride", "0"], "--context is 1024 and --stride 0"),
        (["--tokens", "1"], "text.txt has no two tokens"),
        (["--family", "gpt2"], "holds a model of the family llama, the method needs gpt2"),
    ],
)
def test_what_cannot_be_is_one_line(folder, capsys, more, told):
    assert run(folder, *more) != 0
    assert told in capsys.readouterr().err
