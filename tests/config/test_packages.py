from pathlib import Path

import pytest

from tests.config.copies import SEQ2SEQ, add_rule
from workflow_scripts.common.errors import UserError
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.specs import resolve_run


@pytest.mark.parametrize(
    ("section", "change", "message"),
    [
        ("model", {"width": "thirty"}, "key 'model.width' is 'thirty'; input should be a valid integer"),
        ("model", {"heads": -3}, "key 'model.heads' is -3; input should be greater than or equal to 1"),
        ("model", {"positions": "rotary"}, "input should be 'relative' or 'sinusoidal'"),
        ("problem", {"label_smoothing": 2.0}, "key 'problem.label_smoothing' is 2.0; input should be less than 1"),
        ("model", {"name": "transformers"}, "key 'model.name' is 'transformers'; did you mean 'transformer'?"),
        ("objective", {"name": "my"}, "key 'objective.name' is 'my'; known: carma, compositional, struct"),
        ("objective", {"weight": 0.2}, "unknown key 'objective.weight'"),
    ],
)
def test_a_wrong_value_of_a_model_is_refused_before_any_job(copy: Path, section: str, change: dict, message: str):
    add_rule(copy, SEQ2SEQ, "transformer", scale="small", **{section: change})
    with pytest.raises(UserError) as error:
        resolve_run(load_catalogue(copy), "scan-jump-x2/transformer/default/seed-1", "small")
    assert message in str(error.value)
