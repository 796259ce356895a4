"""What stands at `--out` may be replaced only if a command made it."""

from pathlib import Path

import pytest

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.outputs import check_made_here

OURS = ("scores.csv", ("*.csv", "analysis.json"))


@pytest.mark.parametrize(
    ("names", "foreign"),
    [
        ((), None),
        (("scores.csv", "analysis.json", "words.csv"), None),
        (("scores.csv", "words.csv"), None),  # Snakemake removes a rule's outputs before it runs it again
        (("words.csv",), "words.csv"),
        (("analysis.json",), "analysis.json"),
        (("scores.csv", "thesis.tex"), "thesis.tex"),
    ],
)
def test_a_folder_of_the_command_or_none(tmp_path: Path, names, foreign) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    for name in names:
        (folder / name).write_text("x")
    if foreign:
        with pytest.raises(UserError, match=f"out holds {foreign}, which is not of this command; choose another"):
            check_made_here(folder, *OURS)
    else:
        check_made_here(folder, *OURS)
    assert {path.name for path in folder.iterdir()} == set(names)


def test_a_folder_to_be_made(tmp_path: Path) -> None:
    check_made_here(tmp_path / "new/out", *OURS)
    assert not (tmp_path / "new").exists()


def test_a_file(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("scale: demo\n")
    with pytest.raises(UserError, match=r"config.yaml is a file; choose another --out"):
        check_made_here(tmp_path / "config.yaml", *OURS)
