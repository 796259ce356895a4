from pathlib import Path

import pytest

from tests.config.copies import ROOT, edit
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.options import drop_name
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.packages import settings_class
from workflow_scripts.config.run_specs import resolve_run


@pytest.mark.parametrize(
    ("section", "change", "message"),
    [
        ("model", {"width": "thirty"}, "key 'model.width' is 'thirty'; input should be a valid integer"),
        ("model", {"heads": -3}, "key 'model.heads' is -3; input should be greater than or equal to 1"),
        ("model", {"positions": "rotary"}, "input should be 'relative' or 'sinusoidal'"),
        ("problem", {"label_smoothing": 2.0}, "key 'problem.label_smoothing' is 2.0; input should be less than 1"),
        ("model", {"name": "transformers"}, "key 'model.name' is 'transformers'; did you mean 'transformer'?"),
        ("objective", {"name": "my"}, "key 'objective.name' is 'my'; known: carma, compositional, struct"),
        ("objective", {"weight": 0.2}, "unknown key 'small.settings.objective.weight'"),
    ],
)
def test_a_wrong_value_of_a_model_is_refused_before_any_job(copy: Path, section: str, change: dict, message: str):
    edit(
        copy / "catalogue/scales.yaml",
        lambda scales: scales["small"]["settings"].setdefault(section, {}).update(change),
    )
    with pytest.raises(UserError) as error:
        resolve_run(load_catalogue(copy), "scan-jump-x2/transformer/default/seed-1", "small")
    assert message in str(error.value)


@pytest.mark.parametrize("method", ["transformer", "sq-transformer", "bert", "cat"])
def test_a_method_names_every_setting_of_its_model_and_objective_with_the_defaults(method: str):
    entry = load_catalogue(ROOT).methods[method]
    sections = {"model": entry.settings.model, "objective": entry.settings.objective}
    if method == "cat":
        sections["objective"] = entry.by_task["pairs-wordpiece"].objective
    for section, content in sections.items():
        if content:
            described = settings_class(section, content["name"], entry.kinds[0])
            assert drop_name(content) == described().model_dump()
