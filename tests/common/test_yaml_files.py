"""YAML files that a user or a crate brings are read safely."""

from pathlib import Path

import pytest

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.yaml_files import read_yaml, read_yaml_mapping

BILLION_LAUGHS = "a: &a [x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(f'*{before}' for _ in range(9))}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


def test_aliases_and_merges_are_expanded(tmp_path: Path):
    (tmp_path / "x.yaml").write_text("a: &a {x: 1, z: 2}\nb: {<<: *a, z: 3, y: *a}\n")
    assert read_yaml(tmp_path / "x.yaml")["b"] == {"x": 1, "z": 3, "y": {"x": 1, "z": 2}}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [" + "[" * 10**5, ":1: .*nested more than 50 levels"),
        ("- " * 10**5, ":1: .*nested more than 50 levels"),
        (BILLION_LAUGHS, r":\d: .*aliases expand to more than 1,000,000 values"),
        ("a: &a [*a]", ":1: .*aliases expand"),
        ("a: 1\na: 2", ":2: .*'a' is listed twice; remove one"),
        ("learning_rate: 1e-3", ":1: .*YAML reads 1e-3 as text; write 1.0e-3"),
        ("seeds: [021]", ":1: .*021 is not a decimal number; write one, or '021' for a text"),
        ("seeds: [1, 0x1F]", ":1: .*0x1F is not a decimal number"),
        ("a: 12:30", ":1: .*12:30 is not a decimal number"),
        ("a: 28_42", ":1: .*28_42 is not a decimal number"),
        ("a: 08", ":1: .*YAML reads 08 as text; write 8, or '08' for a text"),
        ("labels: [yes, other]", ":1: .*YAML reads yes as true; write that, or 'yes' for a text"),
        ("label: Off", ":1: .*YAML reads Off as false"),
        ("012: 1", ":1: .*012 is not a decimal number"),
        ("learning_rate: .nan", ":1: .*.nan is no number"),
        ("limit: -.inf", ":1: .*-.inf is no number"),
        (
            "on: [demo]",
            ":1: .*a key must be a name or a number, and 'on' is neither; put it in quotes",
        ),
        ("~: 1", ":1: .*a key must be a name or a number"),
        ("a: [1, 2", ":2: not valid YAML"),
        ("{{ scale }}: 1", ":1: .*a key must be a name or a number"),
        ("? [a]\n: 1", ":1: .*a key must be a name or a number"),
        ("b: 1\na: 2026-13-45", ":2: .*month must be in 1..12"),
        ("b: 1\na: !!timestamp x", ":2: not valid YAML"),
        ("b: 1\na: " + "9" * 5000, ":2: .*4300 digits"),
        ("b: 1\na: !!int 'x'", ":2: .*invalid literal for int"),
        ("a: \0", "control characters are not allowed"),
        ("a: !!python/object/apply:os.system [exit]", ":1: .*could not determine a constructor"),
        ("a: é", "not UTF-8"),
    ],
)
def test_other_content_is_one_line(tmp_path: Path, text: str, problem: str):
    (tmp_path / "x.yaml").write_bytes(text.encode("latin-1"))
    with pytest.raises(UserError, match=rf"x.yaml.*{problem}") as error:
        read_yaml(tmp_path / "x.yaml")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["5", "1.5", "-1"])
def test_a_name_that_is_a_number_is_refused(tmp_path: Path, name: str):
    (tmp_path / "x.yaml").write_text(f"a: {{5: of an inner key}}\n{name}: {{extends: cogs}}\n")
    with pytest.raises(UserError, match=rf"x.yaml:2: the name {name} is a number; put it in quote"):
        read_yaml_mapping(tmp_path / "x.yaml")
    assert read_yaml(tmp_path / "x.yaml")["a"] == {5: "of an inner key"}
    (tmp_path / "x.yaml").write_text(f"'{name}': {{extends: cogs}}\n")
    assert read_yaml_mapping(tmp_path / "x.yaml") == {name: {"extends": "cogs"}}


def test_plain_values_are_what_people_read(tmp_path: Path):
    text = "[true, False, 0, -3, +4, 1_000, 1.5, .5, 5., 007.5, 1.0e-3, 'no', '08', y, 1.2.3, ~]"
    (tmp_path / "x.yaml").write_text(text)
    expected = [True, False, 0, -3, 4, 1000, 1.5, 0.5, 5.0, 7.5, 0.001]
    expected += ["no", "08", "y", "1.2.3", None]
    values = read_yaml(tmp_path / "x.yaml")
    assert values == expected
    assert [type(value) for value in values] == [type(value) for value in expected]


def test_a_byte_order_mark_is_passed_over(tmp_path: Path):
    (tmp_path / "x.yaml").write_text("a: 1\r\n", encoding="utf-8-sig", newline="")
    assert read_yaml(tmp_path / "x.yaml") == {"a": 1}
