"""`validation: none`, for each kind of task: its validation set is not read, and the last weights
are kept.
"""

import json

import pandas as pd
import pytest

from tests.config.as_json import resolve_run
from tests.training.causal_toy import causal_spec, write_prompts, write_text
from tests.training.sentence_toy import sentence_spec, write_encoder, write_pairs
from tests.training.toy import run_main, toy_spec, write_data
from workflow_scripts.__main__ import main
from workflow_scripts.config.loading import load_catalogue


def prepare(folder, task):
    assert main(["prepare", "--task", task, "--scale", "demo", "--out", str(folder)]) == 0


def write(kind, folder):
    """Write data/ and, where a training starts from a model, init/; return the spec."""
    data, init = folder / "data", folder / "init"
    if kind == "seq2seq":
        write_data(data)
        return toy_spec()
    if kind in ("language_modelling", "prompt"):
        if kind == "prompt":
            write_text(folder / "text")
            (folder / "text.json").write_text(
                json.dumps(causal_spec("language_modelling", max_steps=1))
            )
            places = {
                "data": folder / "text",
                "out": folder / "pretrain",
                "state": folder / "text-state",
            }
            assert run_main("train", spec=folder / "text.json", **places) == 0
            init.symlink_to(folder / "pretrain/checkpoint")
        (write_text if kind == "language_modelling" else write_prompts)(data)
        return causal_spec(kind)
    if kind == "masked_lm":
        prepare(data, "pairs-wordpiece")
        return resolve_run(load_catalogue(), "pairs-wordpiece/bert/pretrain/seed-3", "demo")
    write_encoder(init, positions=48)
    if kind == "sentence_prediction":
        write_pairs(data)
        return sentence_spec()
    prepare(data, "squad")
    problem = {"longest": 48, "stride": 8, "longest_question": 16}
    return sentence_spec(task="squad", model={"positions": 48}) | {"kind": kind, "problem": problem}


KINDS = (
    "seq2seq",
    "language_modelling",
    "prompt",
    "masked_lm",
    "sentence_prediction",
    "question_answering",
)


@pytest.mark.parametrize("kind", KINDS)
def test_the_validation_set_is_not_read_and_the_last_weights_are_kept(tmp_path, kind):
    spec = write(kind, tmp_path)
    (tmp_path / "data/valid.parquet").unlink()
    spec["training"] |= {"max_steps": 4, "validate_every": 2, "validation": "none"}
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    places = {name: tmp_path / name for name in ("data", "out", "state")}
    more = ["--init", tmp_path / "init"] if (tmp_path / "init").exists() else []
    assert run_main("train", *more, spec=tmp_path / "spec.json", **places) == 0
    run = json.loads((tmp_path / "out/run.json").read_text())
    assert (run["best_step"], run["best_validation"]) == (4, {})
    assert not pd.read_csv(tmp_path / "out/training.csv")["name"].str.startswith("valid").any()
