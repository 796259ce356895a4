"""The benchmarks, which no other test runs, use names that exist, and call what is there."""

import importlib
import tomllib
from pathlib import Path

import numpy as np
import pytest

from tests.analyses.small_runs import ROOT

COMMANDS = sorted(
    file.stem for file in (ROOT / "benchmarks").glob("*.py") if "def main" in file.read_text()
)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_benchmark_can_be_imported(name: str):
    assert importlib.import_module(f"benchmarks.{name}").main


def test_the_types_of_benchmarks_are_checked():
    """So that a call with arguments that a function no longer takes is found."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "benchmarks" in settings["tool"]["pyright"]["include"]


def test_random_pairs_have_a_batch_from_memory_and_from_files(tmp_path: Path):
    """Those of `cat_layer`: both give the same batch."""
    from benchmarks.cat_layer import mapped, random_pairs

    pairs = random_pairs(vocabulary=50, count=8, longest=6, sememes=10)
    here, there = (
        each.make_batch(np.arange(8), np.random.default_rng(1))
        for each in (pairs, mapped(pairs, tmp_path))
    )
    assert here.ids.shape[0] == 8 and here.ids.equal(there.ids)


def test_random_sentences_have_a_batch():
    """Those of `fine_tuning`: [CLS], two sentences of 2 to 6 words, each with a [SEP]."""
    from benchmarks.fine_tuning import random_sentences

    sentences = random_sentences(vocabulary=50, count=8, longest=6)
    batch = sentences.make_batch(np.arange(8))
    assert (batch.ids[:, 0, 0] == 2).all() and ((batch.ids == 3).sum(-1) == 2).all()
    assert sentences.length.min() >= 3 + 2 * 2 and sentences.length.max() <= 3 + 2 * 6
