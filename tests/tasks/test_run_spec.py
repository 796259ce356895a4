"""Specs as objects and as JSON: one reads the other, and wrong files are refused in one line per
problem.
"""

import pytest

from tests.config.copies import ROOT
from tests.training.causal_toy import causal_spec
from tests.training.toy import toy_spec
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import digest
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.catalogue import parse_run
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.specs import resolve_run, resolve_training
from workflow_scripts.models.transformer.settings import Settings as TransformerSettings
from workflow_scripts.tasks.run_spec import (
    GivenWeightsSpec,
    HubModel,
    ParentRun,
    read_given_weights_spec,
    read_run_spec,
)
from workflow_scripts.tasks.seq2seq.settings import Seq2SeqValidation

RUNS = (
    ("scan-jump-x2/transformer-carma/carma/seed-1", "demo"),
    ("idm/gpt2-small/carma/seed-1", "full"),
    ("paws/cat/mix/seed-2", "full"),
    ("pairs-wordpiece/bert/pretrain/seed-1", "small"),
    ("squad/bert/ft/seed-1", "small"),
)


@pytest.mark.parametrize(("run", "scale"), RUNS)
def test_a_spec_is_read_from_its_json_form(run: str, scale: str):
    spec = resolve_training(load_catalogue(ROOT), Run.parse(run), scale)
    assert read_run_spec(spec.to_json(), "spec") == spec
    assert spec.digest == digest(spec.to_json()) and str(spec.run) == run


def test_sections_are_objects_of_their_own_classes():
    spec = read_run_spec(toy_spec(), "spec")
    assert isinstance(spec.model.settings, TransformerSettings) and spec.model.settings.width == 32
    # a default, which the JSON form leaves out
    assert spec.model.settings.max_relative_position == 20
    assert spec.training.betas == (0.9, 0.98) and spec.origin is None and spec.objective is None
    fine_tuned = read_run_spec(causal_spec("prompt"), "spec")
    assert fine_tuned.origin == ParentRun(run=Run("toy-text", "x", "pretrain", 3), spec="0")
    assert fine_tuned.objective and fine_tuned.objective.name == "carma"


def test_settings_that_have_their_default_are_left_out():
    spec = toy_spec(adam_epsilon=1e-8) | {"problem": {"label_smoothing": 0.0}}
    spec["model"] |= {"gated": True}
    content = read_run_spec(spec, "spec").to_json()
    assert "gated" not in content["model"] and content["problem"] == {}
    assert not {"adam_epsilon", "precision"} & content["training"].keys()


@pytest.mark.parametrize(
    "content",
    [
        "none",
        {"split": "valid", "metric": "exact_match"},
        {"split": "valid", "metric": "bleu", "decoding": {"batch_tokens": 64, "beam": 5}},
    ],
)
def test_a_validation_has_one_form_in_json(content):
    spec = read_run_spec(toy_spec(validation=content), "spec")
    assert spec.to_json()["training"]["validation"] == content
    assert spec.training.model_dump(mode="json")["validation"] == content
    selection = spec.training.selection
    assert selection is None if content == "none" else selection == Seq2SeqValidation(**content)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"metric": "exact_match"}, "key 'training.validation.split' is missing"),
        ({"split": 1, "metric": "exact_match"}, "key 'training.validation.split' is 1"),
        (
            {"split": "valid", "metric": "exact_match", "decode": {}},
            "unknown key 'training.validation.decode'; did you mean 'decoding'?",
        ),
        ({"split": "valid", "metric": "f1"}, "needs exact_match or log_likelihood as its metric"),
    ],
)
def test_a_wrong_validation_is_refused(content, message: str):
    with pytest.raises(UserError) as error:
        read_run_spec(toy_spec(validation=content), "spec.json")
    (line,) = str(error.value).splitlines()
    assert message in line


def test_given_weights_have_what_scoring_reads():
    catalogue = load_catalogue(ROOT)
    run = parse_run(catalogue, "bird/bert/ft@paws/seed-1")
    spec = resolve_run(catalogue, run, "small")
    assert isinstance(spec, GivenWeightsSpec) and spec.kept_checkpoints == [] and spec.start is None
    content = spec.to_json()
    assert content["objective"] == {} and content["training"] == {
        "torch_threads": spec.torch_threads
    }
    assert content["init"]["run"] == "paws/bert/ft/seed-1" and content["weights"] == "paws"
    assert read_given_weights_spec(content, "spec") == spec
    with pytest.raises(UserError, match=r"spec: key 'training\.torch_threads' is missing"):
        read_given_weights_spec(content | {"training": {}}, "spec")
    start = resolve_run(
        catalogue, Run.parse("text-bpe-4k/gpt2-small/pretrain@start/seed-2"), "demo"
    )
    assert isinstance(start, GivenWeightsSpec) and start.start and start.start.seed == 2
    hub = resolve_run(catalogue, Run.parse("idm/gpt2-small/ft@start/seed-1"), "full")
    assert isinstance(hub.origin, HubModel) and hub.start is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "seq2sek"}, "key 'kind' is 'seq2sek'; did you mean 'seq2seq'?"),
        ({"task": "../x"}, "key 'task' is '../x'"),
        (
            {"model": {"name": "transformr"}},
            "key 'model.name' is 'transformr'; did you mean 'transformer'?",
        ),
        ({"model": {"layers": 1}}, "key 'model.name' is missing"),
        (
            {"problem": {"smoothing": 0.1}},
            "unknown key 'problem.smoothing'; did you mean 'label_smoothing'?",
        ),
        ({"objective": {"name": "carma", "weight": 2}}, "key 'objective.weight' is 2"),
        ({"data": {"prepare": "os"}}, "key 'data.prepare' is 'os'"),
    ],
)
def test_a_wrong_spec_is_refused(change: dict, message: str):
    with pytest.raises(UserError) as error:
        read_run_spec(toy_spec() | change, "spec.json")
    lines = str(error.value).splitlines()
    assert any(message in line for line in lines) and all(
        line.startswith("spec.json") for line in lines
    )
