"""Given weights scored on another task: the same numbers as by hand, without a training and without
a copy.
"""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
import torch
from tokenizers import Tokenizer

from tests.config.as_json import resolve_run
from tests.config.copies import add_rule, copy_project
from tests.training.toy import assert_one_error, run_main
from workflow_scripts.__main__ import main
from workflow_scripts.common.files import read_json
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.models.encoder.model import Settings, load_model
from workflow_scripts.models.hugging_face import load_tokenizer

SEED = "seed-1"
PRETRAINED, TUNED = f"pairs-wordpiece/bert/pretrain/{SEED}", f"paws/bert/ft/{SEED}"
CHECKPOINTS = {"paws": TUNED, "start": PRETRAINED}


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A copy of the catalogue with short trainings, and BERT pre-trained and tuned on PAWS in its
    results/demo.
    """
    place = copy_project(tmp_path_factory.mktemp("weights"))
    add_rule(
        place,
        "methods/encoders.yaml",
        "bert",
        scale="demo",
        training={"max_steps": 2, "validation": "none"},
    )
    add_rule(
        place,
        "methods/causal.yaml",
        "gpt2-small",
        scale="demo",
        training={"max_steps": 2, "validation": "none"},
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        for task in ("pairs-wordpiece", "paws", "bird", "text-bpe-4k"):
            assert (
                main(
                    [
                        "prepare",
                        "--task",
                        task,
                        "--scale",
                        "demo",
                        "--out",
                        f"results/demo/data/{task}",
                    ]
                )
                == 0
            )
        for run, init in ((PRETRAINED, ()), (TUNED, ("--init", checkpoint(PRETRAINED)))):
            places = {"data": data(run), "out": f"results/demo/runs/{run}"}
            assert run_main("train", *init, run=run, scale="demo", **places) == 0
    return place


@pytest.fixture(autouse=True)
def in_place(place, monkeypatch):
    monkeypatch.chdir(place)


def data(run: str) -> str:
    return f"results/demo/data/{run.split('/')[0]}"


def checkpoint(run: str) -> str:
    return f"results/demo/runs/{run}/checkpoint"


def evaluate(run: str, *more: object) -> int:
    places = {"data": data(run), "out": f"results/demo/runs/{run}/eval"}
    return run_main("evaluate", *more, run=run, scale="demo", **places)


@pytest.mark.parametrize("weights", CHECKPOINTS)
def test_the_scores_are_those_of_the_weights(place, weights):
    run, source = f"bird/bert/ft@{weights}/{SEED}", CHECKPOINTS[weights]
    assert evaluate(run, "--weights", checkpoint(source)) == 0
    folder = Path("results/demo/runs", run)
    assert {path.name for path in folder.rglob("*") if path.is_file()} == {
        "evaluation.json",
        "predictions.parquet",
        "record.json",
        "scores.csv",
    }
    found, trained = (
        read_json(folder / "eval/evaluation.json"),
        read_json(Path(checkpoint(source)).parent / "run.json"),
    )
    assert found["weights"] == {"run": source, "spec": trained["spec_digest"]}
    assert found["checkpoint_sha256"] == trained["files"]["checkpoint/model.safetensors"]
    scores = pd.read_csv(folder / "eval/scores.csv")
    assert set(scores["variant"]) == {f"ft@{weights}"} and set(scores["task"]) == {"bird"}
    # Each phrase alone, through the encoder of the checkpoint.
    spec = resolve_run(load_catalogue(), run, "demo")
    model = load_model(
        Path(checkpoint(source)),
        Settings(**{k: v for k, v in spec["model"].items() if k != "name"}),
    ).eval()
    tokenizer: Tokenizer = load_tokenizer(Path(checkpoint(source)))

    def state(text: str) -> torch.Tensor:
        pieces = tokenizer.encode(text, add_special_tokens=False).ids
        ids = [tokenizer.token_to_id("[CLS]"), *pieces, tokenizer.token_to_id("[SEP]")]
        with torch.no_grad():
            return model(torch.tensor([ids])).last_hidden_state[0, 0]

    pairs = pd.read_parquet("results/demo/data/bird/test.parquet").set_index("item")
    predictions = pd.read_parquet(folder / "eval/predictions.parquet")
    for row in predictions.iloc[:5].itertuples():
        first, second = pairs.loc[row.item, ["first", "second"]]
        assert row.prediction == pytest.approx(
            torch.cosine_similarity(state(first), state(second), dim=0).item(), abs=1e-5
        )


def test_random_weights_are_those_that_a_training_begins_with():
    found = {}
    for seed in (1, 2, 1):
        run = f"text-bpe-4k/gpt2-small/pretrain@start/seed-{seed}"
        shutil.rmtree(f"results/demo/runs/{run}", ignore_errors=True)
        assert evaluate(run) == 0
        made = read_json(Path("results/demo/runs", run, "eval/evaluation.json"))
        assert (
            made["weights"] is None
            and found.setdefault(seed, made["checkpoint_sha256"]) == made["checkpoint_sha256"]
        )
        scores = pd.read_csv(Path("results/demo/runs", run, "eval/scores.csv"))
        words = json.loads(Path("results/demo/data/text-bpe-4k/tokenizer.json").read_text())[
            "model"
        ]["vocab"]
        # hardly better than chance
        assert scores["value"].item() == pytest.approx(len(words), rel=0.2)
    assert found[1] != found[2]


def test_a_wrong_call_is_one_line(capsys):
    run = f"bird/bert/ft@paws/{SEED}"
    for words, told in (
        ((run,), ("starts from {'run': 'paws/bert/ft/seed-1'", "--weights")),
        (
            (run, "--weights", checkpoint(PRETRAINED)),
            (f"the weights are those of {TUNED}", f"has {PRETRAINED}", "correct --weights"),
        ),
        ((TUNED, "--weights", checkpoint(TUNED)), ("names no weights", "--run-dir")),
        ((f"bird/bert/ft@pawz/{SEED}",), ("no weights 'pawz'", "did you mean 'paws'?")),
    ):
        assert evaluate(*words) == 1
        assert_one_error(capsys.readouterr().err, *told)
    assert run_main("train", run=run, scale="demo", data=data(run), out="out") == 1
    assert_one_error(capsys.readouterr().err, "has given weights and no training")
    places = {"data": data(TUNED), "out": "out", "init": checkpoint(TUNED)}
    assert run_main("train", run=TUNED, scale="demo", **places) == 1
    told = (TUNED, f"the weights are those of {PRETRAINED}", f"has {TUNED}", "correct --init")
    assert_one_error(capsys.readouterr().err, *told)
    untrained = f"bird/bert/ft/{SEED}"
    places = {"data": data(run), "out": "out", "init": checkpoint(PRETRAINED)}
    assert run_main("train", run=untrained, scale="demo", **places) == 1
    assert_one_error(capsys.readouterr().err, "bird has no training set")
