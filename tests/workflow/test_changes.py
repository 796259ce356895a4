"""What differs between two facts, in words."""

from hypothesis import given
from hypothesis import strategies as st

from workflow_scripts.workflow.changes import (
    MOST_CHANGES,
    UNSET,
    compare_code,
    find_differences,
    join_first,
    shorten_value,
)

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
