"""What the data sets of sentences share: draws, limits, rows of text files and labels."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.packing import pack
from tests.data.preparing import ToyOptions
from workflow_scripts.common.errors import UserError
from workflow_scripts.data.datasets.sentences import (
    Sentence,
    build_limited_table,
    parse_class,
    parse_number,
    read_tsv,
    split_off,
)
from workflow_scripts.data.sources.archives import read_lines

ROWS = [Sentence(f"train-{i}", f"text {i}", None, float(i % 2)) for i in range(40)]


@given(st.integers(0, 60), st.integers(0, 3))
def test_what_is_taken_out_and_the_rest_are_all_rows_in_their_order(count, seed):
    rest, drawn = split_off(ROWS, count, seed, "purpose")
    assert sorted(rest + drawn, key=ROWS.index) == ROWS
    assert len(drawn) == min(count, len(ROWS))
    assert rest == sorted(rest, key=ROWS.index) and drawn == sorted(drawn, key=ROWS.index)


@given(st.integers(1, 40), st.integers(1, 40))
def test_a_larger_limit_holds_the_smaller(one, other):
    limits = (ToyOptions(limit={"train": count}) for count in sorted((one, other)))
    fewer, more = (
        set(build_limited_table({"train": ROWS}, None, limit, []).tables["train"]["item"])
        for limit in limits
    )
    assert fewer <= more


def test_a_share_of_a_split_is_no_reduction_and_a_number_is():
    share, count = (
        build_limited_table({"train": ROWS}, None, ToyOptions(limit={"train": n}), [])
        for n in (0.25, 10)
    )
    assert share.tables == count.tables and len(share.tables["train"]["label"]) == 10
    assert (share.protocol, count.protocol) == ("paper", "reduced")
    assert share.notes == ["train: 10 of 40 examples, drawn with seed 0"]
    with pytest.raises(UserError, match="no split dev to limit here; known: train"):
        build_limited_table({"train": ROWS}, None, ToyOptions(limit={"dev": 1}), [])


def test_lines_of_a_file_of_a_zip_and_of_a_tar(tmp_path):
    content = "\ufeffone\r\ntwo\u2028still two\n\nthree".encode()
    (tmp_path / "plain.tsv").write_bytes(content)
    pack(tmp_path / "a.zip", {"SST-2/train.tsv": content})
    pack(tmp_path / "a.tar.gz", {"../../final/train.tsv": content})
    expected = [(1, "one"), (2, "two\u2028still two"), (3, ""), (4, "three")]
    assert list(read_lines(tmp_path / "plain.tsv", "train.tsv")) == expected
    for archive in ("a.zip", "a.tar.gz"):
        assert list(read_lines(tmp_path / archive, "train.tsv")) == expected
        with pytest.raises(UserError, match=rf"{archive}: dev.tsv missing"):
            list(read_lines(tmp_path / archive, "dev.tsv"))


def test_bytes_that_are_no_text_are_one_line(tmp_path):
    (tmp_path / "b.tsv").write_bytes(b"fine\ncaf\xe9\n")
    with pytest.raises(UserError, match=r"b.tsv: b.tsv:2: not UTF-8 text"):
        list(read_lines(tmp_path / "b.tsv", "b.tsv"))


def test_rows(tmp_path):
    (tmp_path / "a.tsv").write_text('one\ttwo\n1\t"2\n3\t4\tmore\n5\n')
    rows = read_tsv(tmp_path / "a.tsv", "a.tsv", ("one",))
    assert next(rows) == (2, {"one": "1", "two": '"2'})
    assert next(rows) == (3, {"one": "3", "two": "4"})
    with pytest.raises(UserError, match=r"a.tsv:4: 1 fields, 2 needed"):
        next(rows)
    assert next(read_tsv(tmp_path / "a.tsv", "a.tsv", (), ("first",))) == (1, {"first": "one"})
    assert [line for line, _ in read_tsv(tmp_path / "a.tsv", "a.tsv", (), skip_broken=True)] == [2]


@pytest.mark.parametrize("text", ["", "nan", "inf", "-0.1", "5.1", "four"])
def test_numbers_that_are_none(text):
    with pytest.raises(UserError, match=r"x:7: the label is .*, not a number from 0 to 5"):
        parse_number(text, 0, 5, "x:7")


def test_labels():
    assert parse_number("3.5", 0, 5, "x") == 3.5
    assert parse_class("1", ("0", "1"), "x") == 1.0
    with pytest.raises(UserError, match="x:2: the label is '-1', none of 0, 1"):
        parse_class("-1", ("0", "1"), "x:2")
