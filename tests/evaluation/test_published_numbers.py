import pytest

from workflow_scripts.common.errors import UserError
from workflow_scripts.evaluation.published_numbers import PUBLISHED_COLUMNS, read_published

HEADER = ",".join(PUBLISHED_COLUMNS) + "\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("display,row\n", "published.csv:1: the columns must be display,row"),
        (
            HEADER + "d,r,c,m,1,one,percent,,,s,\n",
            "published.csv:2: 'one' is not a decimal number; .*numbers or empty",
        ),
        (HEADER + "d,r,c,m,1,28_42,percent,,,s,\n", "published.csv:2: '28_42' is not a decimal"),
        (HEADER + 'd,r,c,m,1,"84,2",percent,,,s,\n', "published.csv:2: '84,2' is not a decimal"),
        (HEADER + "d,r,c,m,1,1,percent,inf,,s,\n", "published.csv:2: 'inf' is not a decimal"),
        (HEADER + "d,r,c,m,1,1,percent,,5.5,s,\n", "published.csv:2: .*5.5.*numbers or empty"),
        (HEADER + "d,r,c,m,1,1,percent,,,s\n", "published.csv:2: not 11 columns"),
        (HEADER + "d,r,c,m,1,1,percent,,,s,one, two\n", "published.csv:2: not 11 columns"),
        (
            HEADER + "d,r,c,m,1,1,percent,,,s,\nd,r,c,m,2,2,percent,,,s,\n",
            "published.csv:3: the cell d/r/c/m is listed twice",
        ),
    ],
)
def test_broken_published_numbers_are_named_with_their_line(tmp_path, text, message):
    file = tmp_path / "published.csv"
    file.write_text(text)
    with pytest.raises(UserError, match=message):
        read_published(file)


def test_missing_published_numbers(tmp_path):
    with pytest.raises(UserError, match=r"nothing.csv does not exist; restore it"):
        read_published(tmp_path / "nothing.csv")


def test_a_file_saved_by_a_spreadsheet_is_read(tmp_path):
    row = "d,r,c,m,84.2±1,84.2,percent,1,3,s,\n"
    plain, saved = tmp_path / "plain.csv", tmp_path / "saved.csv"
    plain.write_text(HEADER + row, encoding="utf-8")
    saved.write_text(HEADER + row, encoding="utf-8-sig", newline="\r\n")
    assert saved.read_bytes().startswith(b"\xef\xbb\xbfdisplay") and b"\r\n" in saved.read_bytes()
    assert read_published(saved) == read_published(plain)
    assert len(read_published(saved)) == 1
