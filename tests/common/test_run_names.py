import json
import re

import pytest

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.run_names import Run, VariantKey, name_weights, split_weights


def test_names_are_parsed_as_they_are_formatted():
    run = Run.parse("bird/cat/mix@paws/seed-21")
    assert run == Run("bird", "cat", "mix@paws", 21)
    assert str(run) == f"{run}" == "bird/cat/mix@paws/seed-21"
    assert str(run.variant_key) == "bird/cat/mix@paws"
    assert VariantKey.parse("bird/cat/mix@paws") == run.variant_key
    assert run.variant_key.make_run(21) == run


@pytest.mark.parametrize(
    "text", ["", "a/b/c", "a/b/c/1", "a/b/c/seed-", "a/b/c/seed-x", "a/b/c/d/seed-1"]
)
def test_a_run_of_another_form_is_refused(text):
    message = f"run '{text}' is not of the form <task>/<method>/<variant>/seed-<n>"
    with pytest.raises(UserError, match=re.escape(message)):
        Run.parse(text)


@pytest.mark.parametrize("text", ["", "a/b", "a/b/c/seed-1"])
def test_a_variant_of_another_form_is_refused(text):
    with pytest.raises(UserError, match="is not of the form <task>/<method>/<variant>"):
        VariantKey.parse(text)


def test_weights_are_part_of_the_name_of_a_variant():
    assert name_weights("mix", "paws") == "mix@paws" and name_weights("mix", None) == "mix"
    assert split_weights("mix@paws") == ("mix", "paws") and split_weights("mix") == ("mix", None)
    scored, trained = Run("bird", "cat", "mix@paws", 21), Run("bird", "cat", "mix", 21)
    assert scored.weights == scored.variant_key.weights == "paws" and trained.weights is None
    assert scored.training == trained == trained.training
    assert scored.variant_key.trained_variant == trained.variant_key


def test_runs_are_sorted_by_their_parts_and_seeds_as_numbers():
    runs = [Run("b", "m", "v", 1), Run("a", "m", "v", 10), Run("a", "m", "v", 9)]
    assert [str(run) for run in sorted(runs)] == ["a/m/v/seed-9", "a/m/v/seed-10", "b/m/v/seed-1"]


def test_a_parent_run_is_a_text_in_files():
    from workflow_scripts.tasks.run_spec import ParentRun

    parent = ParentRun(run=Run("a", "m", "v", 1), spec="0")
    content = {"run": "a/m/v/seed-1", "spec": "0"}
    assert parent.model_dump() == parent.model_dump(mode="json") == content
    assert json.loads(parent.model_dump_json()) == content
    assert ParentRun.model_validate(content) == parent
    with pytest.raises(ValueError, match="not of the form"):
        ParentRun.model_validate({"run": "a/m/v", "spec": "0"})
