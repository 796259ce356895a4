"""Parents of a run's own seed, and searches, in specs: what they change, and what they leave alone."""

import pytest
import yaml

from workflow_scripts.catalogue import digest, load_catalogue, parent, parse_run, resolve_run, searched
from workflow_scripts.errors import UserError


def catalogue(folder, **text_task):
    """The project's catalogue in `folder`, with changed settings of GPT-2's fine-tuning on SST at demo."""
    import shutil
    from pathlib import Path

    root = Path(__file__).parents[1]
    for part in ("catalogue", "papers"):
        shutil.copytree(root / part, folder / part)
    file = folder / "catalogue/scales.yaml"
    scales = yaml.safe_load(file.read_text())
    scales["demo"]["by_task"] = scales["demo"]["by_task"] | {"sst": text_task}
    file.write_text(yaml.safe_dump(scales))
    return load_catalogue(folder)


def spec(found, seed, variant="ft"):
    return resolve_run(found, f"sst/gpt2-small/{variant}/seed-{seed}", "demo")


def test_the_parent_has_the_own_seed(tmp_path):
    found = catalogue(tmp_path, init={"seed": "own"})
    for seed in (3, 9):
        run = parse_run(found, f"sst/gpt2-small/ft/seed-{seed}")
        pretrained = f"text-bpe-4k/gpt2-small/pretrain/seed-{seed}"
        assert spec(found, seed)["init"] == {"run": pretrained, "spec": digest(resolve_run(found, pretrained, "demo"))}
        assert str(parent(found, run, "demo")) == pretrained


def test_a_named_seed_stays_as_it_was(tmp_path):
    found = catalogue(tmp_path)
    assert spec(found, 9)["init"]["run"] == "text-bpe-4k/gpt2-small/pretrain/seed-1"
    assert spec(found, 9).keys() == spec(load_catalogue(), 9).keys()
    assert "search" not in spec(found, 9)
    assert searched(found, parse_run(found, "sst/gpt2-small/ft/seed-9"), "demo") is None


def test_a_search_is_in_the_spec_of_what_is_trained_alone(tmp_path):
    grid = {"seed": 2, "learning_rate": [0.1, 0.2], "batch_sentences": [8]}
    found = catalogue(tmp_path, search=grid)
    assert spec(found, 9)["search"] == grid | {"epochs": None}
    assert str(searched(found, parse_run(found, "sst/gpt2-small/ft/seed-9"), "demo")) == "sst/gpt2-small/ft/seed-2"
    assert "search" not in spec(found, 9, "original")  # max_steps 0


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"learning_rate": [0.1]}, "give both, or neither"),
        (
            {"learning_rates": [0.1]},
            "unknown key 'demo.by_task.sst.settings.search.learning_rates'; did you mean 'learning_rate'?",
        ),
        ({"learning_rate": [-1.0], "batch_sentences": [8]}, "greater than 0"),
    ],
)
def test_a_wrong_search_is_one_line(tmp_path, grid, message):
    with pytest.raises(UserError) as caught:
        spec(catalogue(tmp_path, search=grid), 1)
    assert message in str(caught.value) and "\n" not in str(caught.value)
