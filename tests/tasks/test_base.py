"""Kinds of tasks: each is a class that has its own settings, and an objective that does not fit its
loss is refused.
"""

import json
from pathlib import Path

import pytest

from tests.training.causal_toy import causal_spec
from tests.training.toy import toy_spec
from workflow_scripts.common.errors import UserError
from workflow_scripts.provenance.run_job_spec import read_run_job_spec
from workflow_scripts.tasks.base import TaskKind, check_inputs, load_kind
from workflow_scripts.tasks.packages import list_packages, load_kind_settings
from workflow_scripts.tasks.run_spec import read_run_spec

# Keys that not all kinds read, by section and kind.
OWN_KEYS = {
    "evaluation": {
        "seq2seq": {"beam", "joined", "max_length", "max_length_ratio", "measures", "same_word"},
        "prompt": {"match"},
    },
    "training": {
        "seq2seq": {"also_keep", "compiled", "shuffle_rows"},
        "language_modelling": {"batch_sentences"},
        "masked_lm": {"batch_sentences", "gradient_checkpointing"},
        "prompt": {"batch_sentences", "gradient_checkpointing"},
        "question_answering": {"batch_sentences", "gradient_checkpointing"},
        "sentence_prediction": {"batch_sentences", "gradient_checkpointing"},
    },
}
PRETRAININGS = {"language_modelling", "masked_lm"}


@pytest.mark.parametrize("name", list_packages("tasks"))
def test_each_kind_is_a_class_with_settings_of_its_own(name: str):
    kind, settings = load_kind(name), load_kind_settings(name)
    assert isinstance(kind, TaskKind)
    assert (type(kind).predict is TaskKind.predict) == (name in PRETRAININGS)
    for section, own_keys in OWN_KEYS.items():
        keys = set(getattr(settings, section).model_fields)
        of_others = set().union(*own_keys.values())
        assert keys & of_others == own_keys.get(name, set()), section


@pytest.mark.parametrize(("key", "value"), [("beam", 4), ("joined", "words"), ("max_length", 10)])
def test_a_spec_file_with_an_evaluation_key_of_another_kind_is_refused(
    tmp_path: Path, key: str, value: object
):
    content = {
        "spec": causal_spec("prompt"),
        "evaluation": {"splits": ["test"], "batch_tokens": 512},
    }
    file = tmp_path / "spec.json"
    file.write_text(json.dumps(content))
    job_spec = read_run_job_spec(file)
    assert (
        job_spec.evaluation
        and job_spec.evaluation.model_dump(exclude_defaults=True) == content["evaluation"]
    )
    content["evaluation"][key] = value
    file.write_text(json.dumps(content))
    with pytest.raises(UserError, match=rf"^{file}: unknown key 'evaluation\.{key}'; "):
        read_run_job_spec(file)


def test_the_settings_that_all_trainings_have_say_that_nothing_more_is_kept_or_compiled():
    seq2seq = read_run_spec(toy_spec(also_keep=["last", "test"], compiled=True), "spec").training
    assert seq2seq.list_kept_checkpoints() == ["last", "test"] and seq2seq.kept_splits == ["test"]
    assert seq2seq.is_compiled() and seq2seq.drop_validation().list_kept_checkpoints() == []
    prompt = read_run_spec(causal_spec("prompt"), "spec").training
    assert prompt.list_kept_checkpoints() == prompt.kept_splits == [] and not prompt.is_compiled()
    assert prompt.drop_validation() == prompt.model_copy(update={"validation": "none"})


@pytest.mark.parametrize(
    ("spec", "objective", "kind"),
    [
        (causal_spec("prompt"), "structural_quantisation", "seq2seq"),
        (toy_spec(), "compositional", "masked_lm"),
    ],
)
def test_an_objective_of_another_kind_of_task_is_refused(spec: dict, objective: str, kind: str):
    with pytest.raises(
        UserError,
        match=f"'objective.name' is '{objective}', which changes the loss of {kind} alone",
    ):
        read_run_spec(spec | {"objective": {"name": objective}}, "spec")


def test_an_objective_that_wraps_any_loss_is_read_for_each_kind():
    carma = {"name": "carma", "weight": 0.5, "last_block_mi": 1, "last_block_stability": 1}
    for spec in (causal_spec("prompt"), toy_spec()):
        objective = read_run_spec(spec | {"objective": carma}, "spec").objective
        assert objective and objective.name == "carma"


@pytest.mark.parametrize(
    ("inputs", "counts", "checked"),
    [
        (["run thrice\n", "walk\r\n", "jump"], (1,), ["run thrice", "walk", "jump"]),
        ([("a\n", "b"), ["c", "d\n"]], (2,), [("a", "b"), ("c", "d")]),
        (["a", ("b", "c")], (1, 2), ["a", ("b", "c")]),
        (["a\nb", "", " "], (1,), ["a\nb", "", " "]),
    ],
)
def test_inputs_are_texts_without_the_newline_of_a_file(inputs, counts, checked):
    assert check_inputs(inputs, counts) == checked


@pytest.mark.parametrize(
    ("inputs", "counts", "problem"),
    [
        (["a", None], (1,), r"input 1 is None; the model needs a text$"),
        ([("a", "b")], (1,), r"input 0 is \('a', 'b'\); the model needs a text$"),
        (["a dog runs"], (2,), r"input 0 is 'a dog runs'; the model needs a pair of texts$"),
        ([("a", "b", "c")], (2,), r"the model needs a pair of texts$"),
        ([("a", float("nan"))], (2,), r"input 0 is \('a', nan\); the model needs a pair of texts$"),
        ([3], (1, 2), r"input 0 is 3; the model needs a text or a pair of texts$"),
        ([b"a"], (1,), r"input 0 is b'a'; the model needs a text$"),
        ([{"a": 1}], (1,), r"the model needs a text$"),
    ],
)
def test_an_input_that_does_not_fit_is_one_line(inputs, counts, problem):
    with pytest.raises(UserError, match=problem):
        check_inputs(inputs, counts)
