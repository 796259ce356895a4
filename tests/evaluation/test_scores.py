"""The score table: it reads back as written, and nothing that is not a score gets into it or out of
it.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_files, write_json
from workflow_scripts.evaluation.scores import Score, make_scores, read_scores, write_scores

ROW = {
    "task": "t",
    "metric": "exact_match",
    "value": 12.5,
    "unit": "percent",
    "n": 8,
    "protocol": "reduced",
}
names = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1)


@given(
    st.fixed_dictionaries(
        {
            **{name: st.just(value) for name, value in ROW.items()},
            "value": st.floats(allow_nan=False, allow_infinity=False),
        },
        optional={
            "seed": st.integers(0, 2**31),
            "split": names,
            "layer": st.integers(0, 99),
            "rate": st.floats(0, 1),
        },
    )
)
def test_scores_read_back_exactly(tmp_path_factory, row):
    path = tmp_path_factory.mktemp("scores") / "scores.csv"
    write_scores(path, [Score(**row)])
    assert read_scores(path) == [Score(**row)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"value": float("nan")}, "value is nan"),
        ({"value": None}, "no value"),
        ({"n": 1.5}, "n is '1.5', not a whole number"),
        ({"protocol": "papers"}, "protocol 'papers' is none of"),
        ({"task": ""}, "no task"),
    ],
)
def test_what_is_not_a_score_is_not_written(tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        write_scores(tmp_path / "scores.csv", [Score(**ROW | change)])
    assert not (tmp_path / "scores.csv").exists()


def test_scores_are_made_from_values_and_columns():
    values = {"exact_match": (50, "percent", 8), "bleu": (None, "BLEU", 8)}
    (score,) = make_scores({"split": "test", "seed": 3}, values)
    assert score == Score("exact_match", 50.0, "percent", 8, split="test", seed=3)
    assert (score.subset, score.key.split, score.has({"seed": 3})) == ("all", "test", True)
    assert not score.has({"seed": 4})
    with pytest.raises(ValueError, match="no column accuracy"):
        make_scores({"accuracy": 1}, values)


def test_a_score_given_twice_is_refused(tmp_path):
    scores = [Score(**ROW), Score(**ROW | {"seed": 1}), Score(**ROW | {"value": 3.0})]
    with pytest.raises(ValueError, match="lines 2 and 4 give the same score twice"):
        write_scores(tmp_path / "scores.csv", scores)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("metric", "measure", "the columns are not task"),
        ("12.5", "many", "line 2: value is 'many', not a number"),
        ("12.5", "12_5", "line 2: value is '12_5', not a number"),
        ("12.5", "1e999", "line 2: value is 1e999"),
        ("12.5", "-inf", "line 2: value is -inf"),
        ("12.5", "", "line 2 has no value"),
        ("reduced", "reduced,,,,,,,,,,", "line 2 has more columns"),
        ("8", '"8', "unexpected end of data"),
    ],
)
def test_a_broken_file_is_named_with_its_line(tmp_path, old, new, message):
    path = tmp_path / "scores.csv"
    write_scores(path, [Score(**ROW)])
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(UserError, match=f"{path}: .*{message}"):
        read_scores(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"scores\.csv does not exist"):
        read_scores(tmp_path / "scores.csv")


@pytest.mark.parametrize("manifest", ["evaluation.json", "analysis.json"])
def test_a_table_that_was_cut_between_two_lines_is_refused(tmp_path, manifest):
    path = tmp_path / "scores.csv"
    write_scores(path, [Score(**ROW), Score(**ROW | {"subset": "new"})])
    write_json(tmp_path / manifest, {"files": hash_files(tmp_path)})
    assert len(read_scores(path)) == 2
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(
        UserError,
        match=r"scores\.csv does not match its checksum; delete .* and run ./reproduce again",
    ):
        read_scores(path)
