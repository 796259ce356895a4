"""Pre-training on masked words by the commands that a user types: learning, resuming, scoring,
refusals.
"""

import json
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from tests.config.as_json import resolve_run
from tests.models.sections import parse_model
from tests.training.test_killed import Runs, wait_for_new_state
from tests.training.toy import assert_one_error, name_parent, run_main
from workflow_scripts.__main__ import main
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.models.importing import import_model
from workflow_scripts.tasks.base import Checkpoint
from workflow_scripts.tasks.masked_lm.batches import IGNORED, bucket_pairs
from workflow_scripts.tasks.masked_lm.training_setup import read_sentence_pairs
from workflow_scripts.tasks.run_spec import read_run_spec
from workflow_scripts.tasks.settings import Evaluation

WITHOUT_NEXT_SENTENCE = ("roberta-style", "distilbert-style")
METHODS = ("bert", "bert-matched", *WITHOUT_NEXT_SENTENCE, "cat")
READOUTS = {"cat": ("mix", "cont", "comp")}
EVALUATION = {"splits": ["valid"], "batch_tokens": 512}


def spec_of(
    method: str, variant: str = "pretrain", task: str = "pairs-wordpiece", **training: object
) -> dict:
    """The demo's spec with other settings of the training."""
    spec = resolve_run(load_catalogue(), f"{task}/{method}/{variant}/seed-3", "demo")
    return {**spec, "training": {**spec["training"], **training}}


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    """The demo's data."""
    return prepared(tmp_path_factory.mktemp("pairs") / "data")


def prepared(folder: Path, task: str = "pairs-wordpiece") -> Path:
    assert main(["prepare", "--task", task, "--scale", "demo", "--out", str(folder)]) == 0
    return folder


def train(place: Path, spec: dict, data: Path, *more: object) -> int:
    (place / "spec.json").write_text(json.dumps(spec))
    return run_main(
        "train",
        *more,
        spec=place / "spec.json",
        data=data,
        out=place / "out",
        state=place / "state",
    )


@pytest.fixture(scope="module", params=METHODS)
def trained(request, tmp_path_factory, data) -> Path:
    """A run of each method, longer than the demo's."""
    place = tmp_path_factory.mktemp(request.param)
    assert train(place, spec_of(request.param, max_steps=150, validate_every=75), data) == 0
    return place


def test_it_learns_and_its_checkpoint_is_an_encoder(trained):
    run = json.loads((trained / "out/run.json").read_text())
    history = pd.read_csv(trained / "out/training.csv")
    mlm = history[history["name"].isin(["mlm", "mlm_mixed"])]["value"].tolist()
    assert mlm[-1] < mlm[0] - 0.7
    names = {path.name for path in (trained / "out/checkpoint").iterdir()}
    assert names == {"config.json", "model.safetensors", "tokenizer.json"}
    model = parse_model(run["spec"]["model"])
    loaded = import_model(model.name).load_model(trained / "out/checkpoint", model.settings)
    assert loaded.config.model_type == model.settings.family
    nsp = {name for name in history["name"] if name.startswith("nsp")}
    assert bool(nsp) == (run["spec"]["method"] not in WITHOUT_NEXT_SENTENCE)


def test_scores_are_those_of_one_pair_at_a_time(trained, data, tmp_path):
    assert (
        run_main(
            "evaluate",
            run_dir=trained / "out",
            data=data,
            settings=EVALUATION,
            out=tmp_path / "eval",
        )
        == 0
    )
    scores = pd.read_csv(tmp_path / "eval/scores.csv")
    spec = read_run_spec(json.loads((trained / "spec.json").read_text()), "spec")
    readouts = READOUTS.get(spec.method, ("last",))
    assert tuple(dict.fromkeys(scores["readout"])) == readouts

    model = Checkpoint(
        "run", trained / "out/checkpoint", spec, Evaluation(**EVALUATION), None
    ).load_model()
    pairs, rng = read_sentence_pairs(spec, data, "valid"), np.random.default_rng(0)
    nats, right, follows = ({name: [] for name in readouts} for _ in range(3))
    for rows in bucket_pairs(pairs, 512, None):
        batch = pairs.make_batch(rows, rng)
        for row in range(len(rows)):
            length = int(batch.real[row].sum())
            ids, types = batch.ids[row : row + 1, :length], batch.types[row : row + 1, :length]
            for name, states in model.compute_states(ids, torch.ones_like(ids), types).items():
                logits = model.heads["words"](states[0]).log_softmax(-1)
                for place, label in enumerate(batch.labels[row, :length].tolist()):
                    if label != IGNORED:
                        nats[name].append(-logits[place, label].item())
                        right[name].append(logits[place].argmax().item() == label)
                answer = model.heads["next_sentence"](states[0, 0]).argmax().item()
                follows[name].append(answer == batch.follows[row].item())
    for name in readouts:
        found = scores[scores["readout"] == name].set_index("metric")["value"]
        assert found["cross_entropy"] == pytest.approx(np.mean(nats[name]), rel=1e-4)
        assert found["mlm_accuracy"] == pytest.approx(100 * np.mean(right[name]))
        assert ("nsp_accuracy" in found) == (spec.method not in WITHOUT_NEXT_SENTENCE)
        if "nsp_accuracy" in found:
            assert found["nsp_accuracy"] == pytest.approx(100 * np.mean(follows[name]))


def test_settings_of_the_sememes_reach_the_batches(data):
    spec, shares = spec_of("cat"), []
    for changes in ({}, {"sememes": False}):
        changed = read_run_spec(spec | {"problem": spec["problem"] | changes}, "spec")
        pairs = read_sentence_pairs(changed, data, "valid")
        shares.append(
            int(pairs.make_batch(np.arange(20), np.random.default_rng(0)).share.count_nonzero())
        )
    assert shares[0] > shares[1] == 0


def test_validation_is_the_score_of_the_first_readout(trained, data, tmp_path):
    spec = json.loads((trained / "spec.json").read_text())
    settings = EVALUATION | {"batch_tokens": spec["training"]["batch_tokens"]}
    assert (
        run_main(
            "evaluate", run_dir=trained / "out", data=data, settings=settings, out=tmp_path / "eval"
        )
        == 0
    )
    first = pd.read_csv(tmp_path / "eval/scores.csv").query("metric == 'cross_entropy'").iloc[0]
    best = json.loads((trained / "out/run.json").read_text())["best_validation"]["log_likelihood"]
    assert first["value"] == pytest.approx(-best, rel=1e-5)


@pytest.mark.parametrize(
    "variant",
    [
        "pretrain-no-decomposition",
        "pretrain-no-mixing",
        "pretrain-no-nuance",
        "pretrain-no-consistency",
    ],
)
def test_ablations_lack_their_term(tmp_path, data, variant):
    assert (
        train(tmp_path, spec_of("cat", variant, max_steps=2, validate_every=2, log_every=1), data)
        == 0
    )
    names = set(pd.read_csv(tmp_path / "out/training.csv")["name"])
    lacking = {"decomposition": {"decomposition", "sparsity"}, "nuance": {"nuance", "nuance_task"}}
    term = variant.removeprefix("pretrain-no-")
    every = {"decomposition", "sparsity", "nuance", "nuance_task", "consistency"}
    unweighted = {"sparsity"}  # the catalogue's choice for this task
    assert every - names == lacking.get(term, {term} & every) | unweighted


class MaskedRuns(Runs):
    """A run of CAT, with dropout, instead of the toy run."""

    checkpoints = ("model",)

    def __init__(self, folder: Path, data: Path, task: str):
        self.folder = folder
        (folder / "data").symlink_to(data)
        spec = spec_of("cat", task=task, max_steps=50, validate_every=20, log_every=7)
        spec["model"] |= {"dropout": 0.1}
        (folder / "spec.json").write_text(json.dumps(spec))
        self.whole = folder / "whole"
        self.whole.mkdir()
        assert train(self.whole, spec, data, "--device", "cpu") == 0


@pytest.mark.parametrize(
    ("task", "number"),
    [
        pytest.param("pairs-wordpiece", signal.SIGTERM, marks=pytest.mark.faults),
        ("wikipedia-bookcorpus", signal.SIGKILL),
    ],
)
@pytest.mark.slow
def test_killed_it_ends_with_the_same_bytes(tmp_path, data, task, number):
    """Masks and false pairs are drawn as if it had not been killed; also in an epoch over pairs
    that are mapped.
    """
    folder = data if task == "pairs-wordpiece" else prepared(tmp_path / "prepared", task)
    assert (folder / "train.mapped").exists() == (task == "wikipedia-bookcorpus")
    runs, place = MaskedRuns(tmp_path, folder, task), tmp_path / "killed"
    process = runs.start(place)
    wait_for_new_state(process, place)
    process.send_signal(number)
    process.communicate()
    assert process.returncode == (-number if number == signal.SIGKILL else 128 + number)
    runs.finish(place)
    assert runs.assert_same_as_whole(place)["resumed"] == 1


@pytest.mark.parametrize(
    ("section", "key", "value", "told"),
    [
        ("model", "last_codes", 12, ["model.last_codes is 12", "30 sememes", "set it to 30"]),
        (
            "model",
            "mixing",
            "none",
            ["'model.mixing' is 'none'", "'shared', 'per_layer' or 'mean'"],
        ),
        ("training", "validation", {"split": "valid", "metric": "exact_match"}, ["log_likelihood"]),
    ],
)
def test_what_does_not_fit_is_one_line(capsys, tmp_path, data, section, key, value, told):
    spec = spec_of("cat")
    spec[section][key] = value
    capsys.readouterr()
    assert train(tmp_path, spec, data) == 1
    assert_one_error(capsys.readouterr().err, *told)


def test_a_run_that_starts_from_another_is_refused(capsys, tmp_path, data, trained):
    spec = spec_of(json.loads((trained / "spec.json").read_text())["method"])
    init = ("--init", trained / "out/checkpoint")
    spec = name_parent(spec | {"init": {"run": "pairs/x/pretrain/seed-3"}}, *init)
    capsys.readouterr()
    assert train(tmp_path, spec, data, *init) == 1
    assert_one_error(capsys.readouterr().err, "starts from random weights")
