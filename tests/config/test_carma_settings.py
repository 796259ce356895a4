"""The scale `full` has the settings that CARMA's paper names for each model and task (appendix
B.3), and where it names none, or one that cannot be meant, those of the official code, but for what
papers/carma/NOTES.md decides otherwise.
"""

import pytest

from tests.config.copies import ROOT
from tests.config.filled import resolve_evaluation, resolve_intervention, resolve_run
from workflow_scripts.config.catalogue import parse_run
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.interventions.settings import Options

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

OBJECTIVE = {
    "mi": 0.2,
    "stability": 0.3,
    "stability_pairs": "code",
    "third": "none",
    "temperature": 0.1,
    "negatives": 5,
}
OBJECTIVE |= {
    "similarity": "cosine",
    "spans": "own",
    "positives": "pairwise",
    "padding": False,
    "bos": False,
}
TRAINING = {
    "learning_rate": 6e-5,
    "schedule": "linear",
    "warmup_steps": 500,
    "clip_norm": 1.0,
    "weight_decay": 0.01,
}
TRAINING |= {
    "betas": [0.9, 0.999],
    "adam_epsilon": 1e-8,
    "validation": {"split": "valid", "metric": "exact_match"},
}
INTERVENTION = {"split": "test", "blocks": 5, "poolings": ["max", "mean", "sum"]}
INTERVENTION |= {"rates": [0.25, 0.4], "seeds": [42, 123, 19, 7, 14, 23]}
CANDIDATES = {"top": 5, "similarity_weight": 0.6}
HUB = {
    "gpt2-small": "openai-community/gpt2",
    "gpt2-large": "openai-community/gpt2-large",
    "gemma": "google/gemma-2b",
    "llama-small": "meta-llama/Llama-3.2-1B",
    "llama-large": "meta-llama/Llama-3.2-3B",
    "qwen-small": "Qwen/Qwen2.5-0.5B",
    "qwen-large": "Qwen/Qwen2.5-3B",
}
LABEL = "the sentiment of the headline in brackets"
TEMPLATES = {  # by task and family
    ("idm", "gpt2"): '{content} is called a "',
    ("idm", "gemma"): '{content} is called a "',
    ("idm", "llama"): '{content} is called a "',
    ("idm", "qwen"): '{content} is commonly known as "',
    ("sst", "gpt2"): 'The sentiment of {content} is "',
    (
        "sst",
        "gemma",
    ): f"Determine if {LABEL} is positive, neutral, or negative. Return the label: [{{content}}] =",
    ("sst", "llama"): f"Label {LABEL}: positive, neutral, or negative. [{{content}}] =",
    ("sst", "qwen"): 'The sentiment of {content} is "',
}


@pytest.mark.parametrize(
    ("task", "method", "batch", "epochs", "stability", "mi", "weight"), SETTINGS
)
def test_the_scale_full_has_the_papers_settings_and_else_those_of_the_official_code(
    task, method, batch, epochs, stability, mi, weight
):
    catalogue, name = load_catalogue(ROOT), f"{task}/{method}/carma/seed-42"
    spec, run = resolve_run(catalogue, name, "full"), parse_run(catalogue, name)
    training, objective = spec["training"], spec["objective"]
    assert training["batch_sentences"] == batch
    assert (training["max_steps"], training["epochs"], training["validate_every"]) == (
        None,
        epochs,
        "epoch",
    )
    assert (objective["first_block"], objective["weight"]) == (0, weight)
    assert (objective["last_block_stability"], objective["last_block_mi"]) == (stability, mi)
    plain = resolve_run(catalogue, f"{task}/{method}/ft/seed-42", "full")
    assert plain["objective"]["weight"] == 0 and plain["training"] == training
    assert objective.items() >= OBJECTIVE.items() and training.items() >= TRAINING.items()
    assert spec["init"]["hub"] == HUB[method]
    family = method.split("-")[0]
    assert spec["model"]["template"] == TEMPLATES[task, family]
    assert spec["model"]["bos"] == (family in ("gemma", "llama"))
    assert not spec["model"].get("label_space")
    assert (
        resolve_evaluation(catalogue, run, "full")["match"] == {"idm": "token", "sst": "text"}[task]
    )
    intervention = resolve_intervention(catalogue, run, "full")
    assert intervention.items() >= INTERVENTION.items()
    assert Options(**intervention["candidates"]).model_dump().items() >= CANDIDATES.items()
