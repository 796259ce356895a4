"""Parents of a run's own seed, and searches, in specs: what they change, and what they leave alone."""

import pytest

from tests.config.as_json import resolve_run
from tests.config.copies import CAUSAL, add_rule
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import digest
from workflow_scripts.common.run_names import Run
from workflow_scripts.config import specs
from workflow_scripts.config.catalogue import parse_run
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.specs import find_parent_run, find_search_run
from workflow_scripts.provenance.spec_fingerprints import fingerprint_evaluation
from workflow_scripts.tasks.settings import Evaluation


def catalogue(folder, **text_task):
    """The catalogue of the copy in `folder`, with changed settings of GPT-2's fine-tuning on SST at
    demo.
    """
    add_rule(folder, CAUSAL, "gpt2-small", task="sst", scale="demo", **text_task)
    return load_catalogue(folder)


def spec(found, seed, variant="ft"):
    return resolve_run(found, f"sst/gpt2-small/{variant}/seed-{seed}", "demo")


def test_the_parent_has_the_own_seed(copy):
    found = catalogue(copy, init={"seed": "own"})
    for seed in (3, 9):
        run = parse_run(found, f"sst/gpt2-small/ft/seed-{seed}")
        pretrained = f"text-bpe-4k/gpt2-small/pretrain/seed-{seed}"
        assert spec(found, seed)["init"] == {
            "run": pretrained,
            "spec": digest(resolve_run(found, pretrained, "demo")),
        }
        assert str(find_parent_run(found, run, "demo")) == pretrained


def test_a_named_seed_stays_as_it_was(copy):
    found = catalogue(copy)
    assert spec(found, 9)["init"]["run"] == "text-bpe-4k/gpt2-small/pretrain/seed-1"
    assert spec(found, 9).keys() == spec(load_catalogue(), 9).keys()
    assert "search" not in spec(found, 9)
    assert find_search_run(found, parse_run(found, "sst/gpt2-small/ft/seed-9"), "demo") is None


def test_a_search_is_in_the_spec_of_what_is_trained_alone(copy):
    grid = {"seed": 2, "learning_rate": [0.1, 0.2], "batch_sentences": [8]}
    found = catalogue(copy, search=grid)
    assert spec(found, 9)["search"] == grid
    assert (
        str(find_search_run(found, parse_run(found, "sst/gpt2-small/ft/seed-9"), "demo"))
        == "sst/gpt2-small/ft/seed-2"
    )
    assert "search" not in spec(found, 9, "ft@start")


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"learning_rate": [0.1]}, "give both, or neither"),
        (
            {"learning_rates": [0.1]},
            "unknown key 'search.learning_rates'; did you mean 'learning_rate'?",
        ),
        ({"learning_rate": [-1.0], "batch_sentences": [8]}, "greater than 0"),
    ],
)
def test_a_wrong_search_is_one_line(copy, grid, message):
    with pytest.raises(UserError) as caught:
        spec(catalogue(copy, search=grid), 1)
    assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("lengths", [{"max_steps": None, "epochs": 2}, {"validate_every": "epoch"}])
def test_a_search_in_epochs_names_them_itself(copy, lengths):
    grid = {"learning_rate": [0.1], "batch_sentences": [8]}
    with pytest.raises(
        UserError,
        match=r"sst/gpt2-small/ft: .* validate_every in steps, and passes as search.epochs",
    ):
        spec(catalogue(copy, search=grid, training=lengths), 1)


def test_a_rule_may_put_epochs_in_the_place_of_steps(copy):
    training = spec(catalogue(copy, training={"max_steps": None, "epochs": 2}), 1)["training"]
    assert training["epochs"] == 2 and "max_steps" not in training


def test_epochs_next_to_steps_are_refused(copy):
    with pytest.raises(UserError, match="max_steps is 100 and epochs 2; give one of the two"):
        spec(catalogue(copy, training={"epochs": 2}), 1)


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({"training": {"learning_rate": 0.5}}, True),
        ({"objective": {"weight": 0.5}}, True),
        ({"model": {"template": "{content}:"}}, False),
        ({"init": {"seed": 2}}, False),
    ],
)
def test_what_decides_the_scores_of_given_weights_is_in_their_fingerprint(copy, changes, same):
    settings = Evaluation(splits=["test"], batch_tokens=512)
    before, now = (
        str(
            fingerprint_evaluation(
                settings,
                specs.resolve_run(found, Run.parse("sst/gpt2-small/ft@start/seed-0"), "demo"),
            )
        )
        for found in (load_catalogue(), catalogue(copy, **changes))
    )
    assert (before == now) == same
