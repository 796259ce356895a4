import shutil
from pathlib import Path

import pytest

from tests.config.copies import ROOT, edit
from workflow_scripts.common.errors import UserError
from workflow_scripts.config.loading import load_catalogue, load_config, read_catalogue
from workflow_scripts.config.merging import merged
from workflow_scripts.config.requested import requested_runs
from workflow_scripts.config.run_specs import _resolved, resolve_evaluation, resolve_run
from workflow_scripts.config.runs import parse_run


@pytest.mark.parametrize("section", ["model", "problem", "training", "evaluation"])
def test_an_unknown_setting_is_refused_with_file_key_and_nearest(copy: Path, section: str):
    known = {"model": "layers", "problem": "label_smoothing", "training": "max_steps", "evaluation": "beam"}[section]
    wrong = known[:-1] + "x"
    edit(
        copy / "catalogue/scales.yaml",
        lambda scales: scales["small"]["settings"].setdefault(section, {}).update({wrong: 1}),
    )
    with pytest.raises(UserError) as error:
        resolve_run(load_catalogue(copy), "scan-jump-x2/transformer/default/seed-1", "small")
    assert f"catalogue/scales.yaml: unknown key 'small.settings.{section}.{wrong}'; did you mean '{known}'?" in str(
        error.value
    )


def test_later_layers_win_and_each_value_knows_where_it_comes_from():
    catalogue = load_catalogue(ROOT)
    sections = merged(catalogue, parse_run(catalogue, "scan-jump-x2/transformer/sinusoidal/seed-1"), "small")
    assert sections["model"]["positions"] == ("sinusoidal", "catalogue/methods.yaml transformer.variants.sinusoidal")
    assert sections["model"]["width"][1] == "catalogue/scales.yaml small"
    assert sections["model"]["max_relative_position"][1] == "catalogue/methods.yaml transformer"
    assert sections["evaluation"]["beam"][1] == "catalogue/tasks.yaml scan-jump-x2"


def test_a_layer_that_names_another_package_begins_its_section_anew(copy: Path):
    """And a later one may set its keys alone."""
    other = {"name": "carma", "weight": 0.1}

    def change(methods: dict) -> None:
        pretrain = methods["cat"]["variants"]["pretrain"]
        pretrain["settings"] = {"objective": other}
        pretrain["by_task"] = {"pairs-wordpiece": {"objective": {"weight": 0.2}}}

    edit(copy / "catalogue/methods.yaml", change)
    run = parse_run(load_catalogue(copy), "pairs-wordpiece/cat/pretrain/seed-1")
    found = {key: value for key, (value, _) in merged(load_catalogue(copy), run, "small")["objective"].items()}
    assert found == {**other, "weight": 0.2}


def test_two_papers_may_share_a_run_but_not_disagree_about_it(copy: Path):
    shutil.copytree(copy / "papers/sq_transformer", copy / "papers/other")
    config = load_config({"papers": ["sq_transformer", "other"], "scale": "small"}, copy)
    shared = requested_runs(load_catalogue(copy), config)
    assert set(map(tuple, shared.values())) == {("sq_transformer", "other")}

    def ask_differently(requests: dict) -> None:
        requests["requests"][0]["settings"] = {"training": {"learning_rate": 0.1}}

    edit(copy / "papers/other/requests.yaml", ask_differently)
    read_catalogue.cache_clear()
    _resolved.cache_clear()
    with pytest.raises(UserError, match="ask for different settings of scan-jump-x2/transformer/default"):
        resolve_run(load_catalogue(copy), "scan-jump-x2/transformer/default/seed-11", "small")


@pytest.mark.parametrize(
    ("section", "key", "value", "place"),
    [
        ("training", "learning_rate", -1, "catalogue/methods.yaml sq-transformer"),
        ("model", "dropout", 1.5, "catalogue/methods.yaml sq-transformer"),
        ("model", "source_codes", "six", "catalogue/methods.yaml sq-transformer.variants.sal"),
        ("evaluation", "beam", 0, "catalogue/tasks.yaml scan-jump-x2"),
    ],
)
def test_a_wrong_value_is_named_with_the_file_and_entry_that_set_it(copy: Path, section, key, value, place):
    file, entry = place.split(" ")

    def change(content: dict) -> None:
        for name in entry.split("."):
            content = content[name]
        content.setdefault("settings", {}).setdefault(section, {})[key] = value

    edit(copy / file, change)
    catalogue, run = load_catalogue(copy), parse_run(load_catalogue(copy), "scan-jump-x2/sq-transformer/sal/seed-1")
    with pytest.raises(UserError, match=rf"{key}.* is .*{value}.* \({place}\)$"):
        resolve_run(catalogue, run, "full")
        resolve_evaluation(catalogue, run, "full")


@pytest.mark.parametrize(
    ("file", "change", "said"),
    [
        (
            "methods.yaml",
            lambda it: it["transformer"]["settings"]["model"].update(layerz=2),
            "catalogue/methods.yaml: unknown key 'transformer.settings.model.layerz'; did you mean 'layers'?",
        ),
        (
            "scales.yaml",
            lambda it: it["small"].setdefault("by_method", {}).update(transformer={"model": {"layerz": 2}}),
            "catalogue/scales.yaml: unknown key 'small.by_method.transformer.model.layerz'; did you mean 'layers'?",
        ),
        (
            "scales.yaml",
            lambda it: it["small"]["settings"]["model"].update(heads=5),
            "width 128 is not a multiple of heads 5 (catalogue/scales.yaml small)",
        ),
        (
            "methods.yaml",
            lambda it: it["transformer"]["variants"]["default"].update(settings={"model": {"heads": 5}}),
            "width 128 is not a multiple of heads 5 (model.heads: catalogue/methods.yaml "
            "transformer.variants.default; model.width: catalogue/scales.yaml small)",
        ),
        (
            "methods.yaml",
            lambda it: it["transformer"]["settings"]["model"].update(name="none"),
            "(catalogue/methods.yaml transformer)",
        ),
    ],
)
def test_a_wrong_model_is_named_with_every_entry_that_makes_it_so(copy: Path, file, change, said):
    edit(copy / "catalogue" / file, change)
    with pytest.raises(UserError) as error:
        resolve_run(load_catalogue(copy), "scan-jump-x2/transformer/default/seed-1", "small")
    assert str(error.value).endswith(said), error.value


def test_an_unknown_scale_is_refused_with_the_nearest():
    with pytest.raises(UserError, match=r"no scale 'smal' in catalogue/scales\.yaml; did you mean 'small'"):
        resolve_run(load_catalogue(ROOT), "cogs/transformer/default/seed-1", "smal")


def test_a_scale_can_set_what_one_method_takes_on_one_task(copy: Path):
    """The same keys are unknown to the method's other tasks, whose objectives are others."""
    catalogue = load_catalogue(ROOT)
    for task, expected in (("pairs-wordpiece", 10.0), ("wikipedia-bookcorpus", 1.0)):
        spec = resolve_run(catalogue, f"{task}/cat/pretrain/seed-1", "small")
        assert spec["objective"]["decomposition"] == expected
    assert "decomposition" not in resolve_run(catalogue, "paws/cat/mix/seed-1", "small")["objective"]
    edit(copy / "catalogue/scales.yaml", lambda scales: scales["small"]["by_method_and_task"]["cat"].update(pawz={}))
    with pytest.raises(UserError, match=r"small\.by_method_and_task\.cat' names 'pawz'; did you mean 'paws'"):
        load_catalogue(copy)
