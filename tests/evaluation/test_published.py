import pytest

from workflow_scripts.common.errors import UserError
from workflow_scripts.evaluation.published import PUBLISHED_COLUMNS, read_published

HEADER = ",".join(PUBLISHED_COLUMNS) + "\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("display,row\n", "published.csv:1: the columns must be display,row"),
        (
            HEADER + "d,r,c,m,1,one,percent,,,s,\n",
            "published.csv:2: could not convert .*one.*numbers or empty",
        ),
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
