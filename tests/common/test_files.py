import os
from pathlib import Path

import pytest

from workflow_scripts.common import files
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import (
    check_replaceable,
    format_canonical_json,
    hash_file,
    hash_files,
    is_system_file,
    list_files,
    make_scratch_folder,
    parse_decimal,
    read_csv,
    read_json,
    write_atomically,
    write_json,
)


def test_a_failed_block_leaves_the_old_file_and_no_rubbish(tmp_path: Path):
    target = tmp_path / "scores.csv"
    target.write_text("old")
    with pytest.raises(RuntimeError), write_atomically(target) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["scores.csv"]


def test_a_folder_replaces_a_full_folder(tmp_path: Path):
    target = tmp_path / "data"
    target.mkdir()
    (target / "old").touch()
    with write_atomically(target) as temporary:
        temporary.mkdir()
        (temporary / "new").touch()
    assert os.listdir(target) == ["new"]
    assert os.listdir(tmp_path) == ["data"]


@pytest.mark.parametrize(("needed", "is_there"), [(0, True), (10**18, False)])
def test_a_scratch_folder_is_in_memory_where_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, needed: int, is_there: bool
):
    monkeypatch.setattr(files, "MEMORY", tmp_path)
    monkeypatch.setattr(files, "SCRATCH_BYTES", needed)
    with make_scratch_folder() as folder:
        assert (Path(folder).parent == tmp_path) == is_there
        assert os.listdir(folder) == [] and os.stat(folder).st_mode & 0o077 == 0
    assert not Path(folder).exists()


def test_a_scratch_folder_needs_no_file_system_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(files, "MEMORY", tmp_path / "none")
    with make_scratch_folder() as folder:
        assert Path(folder).is_dir()


def test_json_comes_back_and_broken_json_names_the_line(tmp_path: Path):
    file = tmp_path / "run.json"
    write_json(file, {"b": [1, 2], "a": "é"})
    assert read_json(file) == {"a": "é", "b": [1, 2]}
    file.write_text('{"a": 1,\n "b": }')
    with pytest.raises(UserError, match=r"run\.json:2: not valid JSON"):
        read_json(file)
    file.write_bytes(b'{"a": "\xe9"}')
    with pytest.raises(
        UserError, match=r"run\.json: not UTF-8 text; if ./reproduce made it, .*; if it is yours"
    ):
        read_json(file)


def test_a_byte_order_mark_is_passed_over(tmp_path: Path):
    table, settings = tmp_path / "x.csv", tmp_path / "x.json"
    table.write_text("name,value\nä,1\n", encoding="utf-8-sig", newline="\r\n")
    settings.write_text('{"name": "ä"}', encoding="utf-8-sig")
    assert read_csv(table, ["name"]) == [{"name": "ä", "value": "1"}]
    assert read_json(settings) == {"name": "ä"}


def test_json_that_would_exhaust_the_stack_is_refused(tmp_path: Path):
    file = tmp_path / "run.json"
    file.write_text("[" * 50 + "]" * 50)
    assert str(read_json(file)).count("[") == 50
    for text, problem in (
        ("[" * 51 + "]" * 51, "50 levels deep"),
        ("[" * 10**5, "50 levels"),
        ("9" * 5000, "digits"),
    ):
        file.write_text(text)
        with pytest.raises(UserError, match=problem):
            read_json(file)


@pytest.mark.parametrize(
    ("path", "advice"),
    [
        ("/none/run.json", "pass an existing file"),
        ("none.json", "pass an existing file"),
        ("results/demo/none.json", "make it with ./reproduce results/demo/none.json"),
    ],
)
def test_reproduce_is_advised_for_what_it_makes(path: str, advice: str):
    with pytest.raises(UserError) as raised:
        read_json(path)
    assert str(raised.value) == f"{path} does not exist; {advice}"


def test_sha256_is_that_of_the_bytes(tmp_path: Path):
    (tmp_path / "f").write_bytes(b"abc")
    # FIPS 180-2, appendix B.1.
    assert (
        hash_file(tmp_path / "f")
        == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )


def test_canonical_json_does_not_depend_on_the_order_of_keys():
    assert format_canonical_json({"b": 1, "a": {"d": 2, "c": 3}}) == '{"a":{"c":3,"d":2},"b":1}'


OURS = (("*.csv", "analysis.json"), "scores.csv")


@pytest.mark.parametrize(
    ("names", "foreign"),
    [
        ((), None),
        (("scores.csv", "analysis.json", "words.csv"), None),
        (
            ("scores.csv", "words.csv"),
            None,
        ),  # Snakemake removes a rule's outputs before it runs it again
        (("words.csv",), "words.csv"),
        (("analysis.json",), "analysis.json"),
        (("scores.csv", "thesis.tex"), "thesis.tex"),
        (("scores.csv", ".DS_Store", "._scores.csv", "Thumbs.db"), None),
    ],
)
def test_out_may_be_a_folder_of_the_command_or_an_empty_one(tmp_path: Path, names, foreign) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    for name in names:
        (folder / name).write_text("x")
    if foreign:
        with pytest.raises(
            UserError, match=f"out contains {foreign}, which this command does not write"
        ):
            check_replaceable(folder, *OURS)
    else:
        check_replaceable(folder, *OURS)
    assert {path.name for path in folder.iterdir()} == set(names)


def test_the_parent_of_out_is_made(tmp_path: Path) -> None:
    check_replaceable(tmp_path / "new/out", *OURS)
    assert (tmp_path / "new").is_dir() and not (tmp_path / "new/out").exists()


def test_out_may_not_be_a_file(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("scale: demo\n")
    with pytest.raises(UserError, match=r"config.yaml is a file; choose another --out"):
        check_replaceable(tmp_path / "config.yaml", *OURS)


SYSTEM_NAMES = (".DS_Store", "._run.json", "Thumbs.db", "desktop.ini", ".nfs0001", ".#x.yaml", "x~")


@pytest.mark.parametrize("name", SYSTEM_NAMES)
def test_files_of_the_system_are_no_files_of_a_folder(tmp_path: Path, name: str):
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint/model.safetensors").write_bytes(b"weights")
    (tmp_path / "__MACOSX").mkdir()
    (tmp_path / "__MACOSX/run.json").touch()
    before = hash_files(tmp_path)
    (tmp_path / name).write_text("from elsewhere")
    (tmp_path / "checkpoint" / name).write_text("from elsewhere")
    assert hash_files(tmp_path) == before and list(before) == ["checkpoint/model.safetensors"]
    assert list_files(tmp_path) == [tmp_path / "checkpoint"]
    assert list_files(tmp_path, "*/*") == [tmp_path / "checkpoint/model.safetensors"]


@pytest.mark.parametrize("name", ["run.json", "runs/a/b/scores.csv", ".snakemake", "a.b", "x#1"])
def test_results_are_no_files_of_the_system(name: str):
    assert not is_system_file(name)


def test_a_folder_under_a_folder_of_the_system_is_listed(tmp_path: Path):
    """Only names below the folder count: a checkout may be in a snapshot."""
    folder = tmp_path / ".snapshot/data"
    folder.mkdir(parents=True)
    (folder / "train.parquet").touch()
    assert list_files(folder) == [folder / "train.parquet"]


@pytest.mark.parametrize(
    ("text", "kind", "number"),
    [
        ("", float, None),
        ("", int, None),
        ("28", int, 28),
        ("-3", int, -3),
        ("28.42", float, 28.42),
        (".5", float, 0.5),
        ("+1e-3", float, 0.001),
        ("1e999", float, float("inf")),
    ],
)
def test_a_cell_is_a_decimal_number_or_empty(text, kind, number):
    parsed = parse_decimal(text, kind)
    assert parsed == number
    assert number is None or type(parsed) is kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("28_42", int),
        ("28_42", float),
        ("1.5", int),
        ("1e3", int),
        ("\u0663", int),
        ("nan", float),
        ("inf", float),
        ("0x10", int),
        (" 1", int),
        ("many", float),
    ],
)
def test_a_cell_of_anything_else_is_refused(text, kind):
    with pytest.raises(ValueError):
        parse_decimal(text, kind)
