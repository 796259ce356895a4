from workflow_scripts.common.hashing import format_canonical_json


def test_canonical_json_does_not_depend_on_the_order_of_keys():
    assert format_canonical_json({"b": 1, "a": {"d": 2, "c": 3}}) == '{"a":{"c":3,"d":2},"b":1}'
