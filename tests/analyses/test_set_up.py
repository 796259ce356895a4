"""Sizes of data and models against the files, and the models themselves."""

import json

import pyarrow.parquet as pq
import pytest

from tests.training.causal_toy import KINDS, causal_spec, write_prompts, write_text
from workflow_scripts.__main__ import main
from workflow_scripts.analyses.set_up import analyse
from workflow_scripts.analyses.trained_runs import TrainedRun
from workflow_scripts.common.plug_ins import NoOptions
from workflow_scripts.models.causal_lm.model import load_causal_lm


@pytest.fixture(scope="module", params=["gpt2", "llama", "qwen2", "gemma"])
def run(request, tmp_path_factory) -> TrainedRun:
    """A model that was drawn and not trained, as a run on prompts, whose manifest says how many
    there are.
    """
    place = tmp_path_factory.mktemp(request.param)
    write_text(place / "text")
    data = write_prompts(place / "prompts")
    splits = {
        name: {"rows": pq.read_metadata(data / f"{name}.parquet").num_rows}
        for name in ("train", "valid", "test")
    }
    (data / "dataset.json").write_text(
        json.dumps({"task": "toy-text", "protocol": "stand_in", "splits": splits})
    )
    (place / "spec.json").write_text(
        json.dumps(causal_spec("language_modelling", request.param, max_steps=1))
    )
    paths = {"spec": "spec.json", "data": "text", "out": "run", "state": "state"}
    arguments = [
        str(part) for option, path in paths.items() for part in (f"--{option}", place / path)
    ]
    assert main(["train", *arguments, "--progress", "none"]) == 0
    return TrainedRun("idm", request.param, "ft", 3, "reduced", place / "run", data)


def test_sizes_are_those_of_the_data_and_of_the_model(run):
    scores = analyse([run], NoOptions()).scores
    examples = {
        row.split: (row.value, row.protocol)
        for row in scores
        if row.metric == "examples" and row.subset == "all"
    }
    for split, found in examples.items():
        assert found == (len(pq.read_table(run.data / f"{split}.parquet")), "stand_in")
    assert len(examples) == 3
    model = load_causal_lm(run.folder / "checkpoint", run.method)
    sizes = {row.metric: row.value for row in scores if row.subset == run.method}
    assert sizes["parameters"] * 1e6 == pytest.approx(
        sum(weight.numel() for weight in model.parameters())
    )
    # As causal_spec has them.
    assert [sizes[name] for name in ("layers", "heads", "width", "feed_forward")] == [2, 2, 32, 64]


def test_examples_of_a_model_are_those_whose_answer_is_one_token(run):
    scores = analyse([run], NoOptions()).scores
    counts = {
        row.split: (row.value, row.task)
        for row in scores
        if row.metric == "examples" and row.subset == run.method
    }
    assert counts.keys() == {"train", "valid", "test"}
    fewer = 0
    for split, found in counts.items():
        labels = pq.read_table(run.data / f"{split}.parquet")["label"].to_pylist()
        answerable = [label for label in labels if label in KINDS]  # the others are several tokens
        assert found == (len(answerable), "idm")
        fewer += len(labels) - len(answerable)
    assert fewer > 0
