"""The values of --config have the types that they would have in config.yaml."""

import pytest

from workflow_scripts.common.errors import UserError
from workflow_scripts.config.overrides import merge_overrides, read_overrides


def test_overrides_have_types():
    words = ["scale=small", "papers=[cat]", "seeds=[1, 2]", "extra=true", "x=1.5", "y='2'", "z="]
    assert read_overrides(words) == {
        "scale": "small",
        "papers": ["cat"],
        "seeds": [1, 2],
        "extra": True,
        "x": 1.5,
        "y": "2",
        "z": None,
    }


def test_of_a_repeated_key_the_last_one_counts():
    assert read_overrides(["seeds=[1]", "seeds=[2]"]) == {"seeds": [2]}


def test_a_mapping_changes_the_keys_that_it_has():
    content = {"scale": "demo", "data": {"mirror": None, "models": {"a": 1}}}
    changed = merge_overrides(content, ["data={mirror: /x, models: {b: 2}}"])
    assert changed == {"scale": "demo", "data": {"mirror": "/x", "models": {"a": 1, "b": 2}}}
    assert content["data"] == {"mirror": None, "models": {"a": 1}}


@pytest.mark.parametrize("value", ["no", "[021]", "1e5", "12:30", "[1, 2"])
def test_a_value_that_yaml_reads_otherwise_than_people_is_refused(value):
    with pytest.raises(UserError, match=r"^--config seeds:\d: not valid YAML"):
        read_overrides([f"seeds={value}"])
