"""What differs between two facts, in words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from workflow_scripts.common.files import digest
from workflow_scripts.common.validation import StrictModel
from workflow_scripts.models.transformer.settings import Settings as TransformerSettings
from workflow_scripts.provenance.spec_fingerprints import Fingerprint
from workflow_scripts.workflow.changes import (
    MOST_CHANGES,
    UNSET,
    compare_code,
    compare_fingerprints,
    find_differences,
    join_first,
    shorten_value,
)
from workflow_scripts.workflow.default_values import Default, find_default

VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda children: (
        st.lists(children, max_size=3)
        | st.dictionaries(st.text("abc", min_size=1), children, max_size=3)
    ),
    max_leaves=8,
)


@given(VALUES)
def test_equal_contents_have_no_differences(value):
    assert list(find_differences(value, value)) == []


@given(VALUES, VALUES)
def test_different_contents_have_some(old, new):
    assert bool(list(find_differences(old, new))) == (old != new)


def test_a_difference_is_named_by_its_path():
    old = {"a": {"b": 1, "c": [1, 2]}, "rows": [{"x": 1}, {"x": 2}], "gone": 3}
    new = {"a": {"b": 2, "c": [1, 2, 3]}, "rows": [{"x": 1}, {"x": 5}], "new": 4}
    assert list(find_differences(old, new)) == [
        ("a.b", 1, 2),
        ("a.c", [1, 2], [1, 2, 3]),
        ("rows.1.x", 2, 5),
        ("gone", 3, UNSET),
        ("new", UNSET, 4),
    ]


def test_code_is_named_by_file():
    old, new = {"p.a": "1", "p.b": "1", "p.c": "1"}, {"p.a": "2", "p.b": "1", "p.d": "1"}
    assert compare_code(old, new) == [
        "p/a.py changed",
        "p/c.py is no longer imported",
        "p/d.py is now imported",
    ]


def test_long_lists_and_values_are_cut():
    assert join_first(["x"] * (MOST_CHANGES + 2), ", ").endswith("x, and 2 more")
    assert join_first(["x", "y"], ", ") == "x, y"
    assert len(shorten_value("x" * 500)) < 80 and shorten_value({"b": 1, "a": 2}) == '{"a":2,"b":1}'


class Inner(StrictModel):
    size: int = 3
    needed: int


class Other(StrictModel):
    size: int = 4
    length: int = 5


class Toy(StrictModel):
    weight: float = 0.1
    names: tuple[str, ...] = ("a",)
    needed: int
    inner: Inner
    several: list[Inner] = []
    one_of: Inner | Other | None = None
    named: int = Field(7, alias="as")


@pytest.mark.parametrize(
    ("key", "default"),
    [
        ("weight", 0.1),
        ("names", ["a"]),
        ("inner.size", 3),
        ("one_of", None),
        ("one_of.length", 5),
        ("as", 7),
    ],
)
def test_the_default_of_a_setting_is_found(key, default):
    assert find_default(Toy, key) == Default(default)


@pytest.mark.parametrize(
    "key", ["", "needed", "inner.needed", "wight", "several.0.size", "one_of.size", "weight.more"]
)
def test_a_key_without_a_default_has_none(key):
    assert find_default(Toy, key) is None


MODULE = "workflow_scripts.models.transformer.model"


def describe(old: dict, new: dict, before: str | None = None) -> str:
    """What is said where the section `model` of a spec was `old` and is `new`."""
    spec, now = {"kind": "seq2seq", "model": old}, {"kind": "seq2seq", "model": new}
    fingerprint = Fingerprint(now, (MODULE,), {"model": TransformerSettings})
    code = before or fingerprint.code
    return "; ".join(compare_fingerprints(f"spec {digest(spec)}, code {code}", spec, fingerprint))


DROPOUT = TransformerSettings.model_fields["dropout"].default


def test_a_value_that_equalled_its_default_is_named():
    name = {"name": "transformer"}
    default = f"{DROPOUT} (the default)"
    assert describe(name, name | {"dropout": 0.5}) == f"model.dropout was {default} and is 0.5"
    assert describe(name | {"dropout": 0.5}, name) == f"model.dropout was 0.5 and is {default}"


def test_a_default_that_may_have_been_another_one_is_not_named():
    """Of another model, or where the code of then is not known."""
    changed = describe({"name": "lrf"}, {"name": "transformer", "dropout": 0.5})
    assert (
        changed == 'model.name was "lrf" and is "transformer"; model.dropout was unset and is 0.5'
    )
    name = {"name": "transformer"}
    changed = describe(name, name | {"dropout": 0.5}, before="0" * 16)
    then = "unset or the default of that time"
    assert changed == f"model.dropout was {then} and is 0.5; its code has changed"
    same = describe(name, name | {"dropout": DROPOUT})
    assert same == f"model.dropout was unset and is {DROPOUT}"


def test_a_value_that_equals_a_new_default_is_no_change():
    """The task has always set it; the change is that of the code with the default."""
    name = {"name": "transformer"}
    changed = describe(name | {"dropout": DROPOUT}, name, before="0" * 16)
    assert changed == "its code has changed"
    changed = describe(name | {"dropout": 0.5}, name, before="0" * 16)
    assert changed == f"model.dropout was 0.5 and is {DROPOUT} (the default); its code has changed"


def describe_spec(old: dict, new: dict) -> str:
    """What is said where a spec without settings was `old` and is `new`."""
    now = Fingerprint(new, (MODULE,))
    return "; ".join(
        compare_fingerprints(f"spec {digest(old)}, code {now.code}", old, now, lambda key: " (f)")
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ({"rows": {}}, {"rows": {"a": {"x": 1}}}, "rows.a is new (f)"),
        (
            {"rows": {"a": {"x": 1}, "b": [{"x": 1}]}},
            {"rows": {}},
            "rows.a, rows.b are gone (f)",
        ),
        ({"rows": [{"x": 1}]}, {"rows": [{"x": 1}] * 3}, "rows had 1 entries and has 3 (f)"),
        ({"stop": "last"}, {"stop": {"x": 1}}, "stop has changed (f)"),
        (
            {"init": None},
            {"init": {"hub": "gpt2", "revision": "1"}},
            'init.hub was unset and is "gpt2" (f); init.revision was unset and is "1" (f)',
        ),
        (
            {"runs": [f"a-long-name-of-a-run-{run}" for run in range(5)]},
            {"runs": [f"a-long-name-of-a-run-{run}" for run in range(1, 6)]},
            "runs has also a-long-name-of-a-run-5 and is without a-long-name-of-a-run-0 (f)",
        ),
        ({"seeds": [1, 2]}, {"seeds": [1, 3]}, "seeds was [1,2] and is [1,3] (f)"),
        (
            {"init": {"run": "a", "spec": "1"}},
            {"init": {"run": "b", "spec": "2"}},
            'init.run was "a" and is "b" (f)',
        ),
        ({"init": {"run": "a", "spec": "1"}}, {"init": None}, 'init.run was "a" and is unset (f)'),
        (
            {"init": {"run": "a", "spec": "1"}},
            {"init": {"run": "a", "spec": "2"}},
            "starts from weights that were trained with other settings",
        ),
    ],
)
def test_no_dictionary_and_no_digest_of_a_spec_is_printed(old, new, said):
    assert describe_spec(old, new) == said


def make_claims(papers: list[str], at_least: float = 0.1) -> dict:
    """A spec of claims of these papers."""
    parts = {paper: {f"{paper}-gains": {"at_least": at_least}} for paper in papers}
    return {
        "claims": parts,
        "displays": {paper: {"table1": {"title": paper}} for paper in papers},
        "published": {paper: {} for paper in papers},
        "plans": {paper: {} for paper in papers},
        "runs": [f"{paper}/seed-1" for paper in papers],
        "scale": {"title": "demo"},
        "titles": {paper: paper for paper in papers},
    }


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (["lrf", "mine"], ["lrf"], "paper mine is no longer chosen"),
        (["lrf"], ["lrf", "cat", "mine"], "papers cat, mine are chosen now"),
        (["lrf"], ["cat"], "paper lrf is no longer chosen; paper cat is chosen now"),
    ],
)
def test_another_choice_of_papers_is_said_in_words(old, new, said):
    assert describe_spec(make_claims(old), make_claims(new)) == said
    changed = describe_spec(make_claims(old), make_claims(new, 0.2))
    shared = "; claims.lrf.lrf-gains.at_least was 0.1 and is 0.2 (f)" if "lrf" in new else ""
    assert changed == said + shared
