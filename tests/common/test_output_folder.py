"""The folder at `--out` is replaced only if a command made it."""

from pathlib import Path

import pytest

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.output_folder import check_replaceable

OURS = (("*.csv", "analysis.json"), "scores.csv")


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
        with pytest.raises(UserError, match=f"out contains {foreign}, which this command does not write"):
            check_replaceable(folder, *OURS)
    else:
        check_replaceable(folder, *OURS)
    assert {path.name for path in folder.iterdir()} == set(names)


def test_the_parent_is_made(tmp_path: Path) -> None:
    check_replaceable(tmp_path / "new/out", *OURS)
    assert (tmp_path / "new").is_dir() and not (tmp_path / "new/out").exists()


def test_a_file(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("scale: demo\n")
    with pytest.raises(UserError, match=r"config.yaml is a file; choose another --out"):
        check_replaceable(tmp_path / "config.yaml", *OURS)
