"""The settings that CARMA's paper names for each model and task (appendix B.3) are those of the paper scale."""

import math

import pytest

from tests.catalogue.copies import ROOT
from workflow_scripts.catalogue.loading import load_catalogue
from workflow_scripts.catalogue.run_specs import resolve_run

TRAINING_ITEMS = {"idm": 9563, "sst": 8544}  # table 2
# Task, model, batch, epochs, last block of stability and of MI, weight.
SETTINGS = [
    ("idm", "gpt2-small", 16, 2, 3, 3, 0.2),
    ("idm", "gpt2-large", 16, 2, 8, 8, 0.3),
    ("idm", "gemma", 16, 2, 10, 10, 0.3),
    ("idm", "llama-small", 32, 3, 7, 7, 0.4),
    ("idm", "llama-large", 32, 3, 8, 12, 0.5),
    ("idm", "qwen-small", 64, 3, 5, 5, 0.5),
    ("idm", "qwen-large", 32, 3, 10, 10, 0.4),
    ("sst", "gpt2-small", 16, 2, 4, 4, 0.4),
    ("sst", "gpt2-large", 16, 2, 12, 12, 0.4),
    ("sst", "gemma", 16, 3, 10, 10, 0.3),
    ("sst", "llama-small", 32, 3, 7, 7, 0.3),
    ("sst", "llama-large", 16, 2, 8, 8, 0.5),
    ("sst", "qwen-small", 64, 2, 5, 5, 0.4),
    ("sst", "qwen-large", 32, 2, 7, 7, 0.5),
]


@pytest.mark.parametrize(("task", "method", "batch", "epochs", "stability", "mi", "weight"), SETTINGS)
def test_the_paper_scale_has_the_papers_settings(task, method, batch, epochs, stability, mi, weight):
    spec = resolve_run(load_catalogue(ROOT), f"{task}/{method}/carma/seed-42", "paper")
    training, objective = spec["training"], spec["objective"]
    assert training["batch_sentences"] == batch
    assert training["max_steps"] == epochs * math.ceil(TRAINING_ITEMS[task] / batch)
    assert objective["first_block"] == 0
    assert (objective["last_block_stability"], objective["last_block_mi"]) == (stability, mi)
    assert objective["weight"] == weight
    plain = resolve_run(load_catalogue(ROOT), f"{task}/{method}/ft/seed-42", "paper")
    assert plain["objective"]["weight"] == 0 and plain["training"] == training
