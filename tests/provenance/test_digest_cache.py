"""Kept digests are those that the source has, and a cache that cannot be read or written is none."""

import sys
from pathlib import Path

import pytest

from workflow_scripts.common.files import read_json
from workflow_scripts.provenance import digest_cache
from workflow_scripts.provenance.digest_cache import DigestCache, hash_source


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with one entry."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    path = tmp_path / "__pycache__/code.json"
    digests = DigestCache(path, "this code")
    assert digests.get("a") is None
    digests.add("a", ["digest", ["imported"]])
    digests.store()
    return path


def test_an_entry_is_found_by_the_next_process(file: Path):
    assert DigestCache(file, "this code").get("a") == ["digest", ["imported"]]


def test_what_other_code_has_computed_is_not_read_and_is_replaced(file: Path):
    digests = DigestCache(file, "other code")
    assert digests.get("a") is None
    digests.add("a", ["another", []])
    digests.store()
    assert DigestCache(file, "other code").get("a") == ["another", []]
    assert DigestCache(file, "this code").get("a") is None


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"null", b'{"written_by": "this', b"\xff"])
def test_a_damaged_cache_is_an_empty_one(file: Path, content: bytes):
    file.write_bytes(content)
    digests = DigestCache(file, "this code")
    assert digests.get("a") is None
    digests.add("a", ["digest", []])
    digests.store()
    assert DigestCache(file, "this code").get("a") == ["digest", []]


def test_another_source_or_name_is_another_entry():
    keys = {hash_source(name, source) for name in ("a", "b") for source in (b"x = 1\n", b"x = 2\n")}
    assert len(keys) == 4


def test_of_too_many_entries_those_in_use_are_kept(file: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(digest_cache, "MAX_ENTRIES", 1)
    digests = DigestCache(file, "this code")
    digests.add("b", ["new", []])
    digests.store()
    assert list(read_json(file)["entries"]) == ["b"]


@pytest.mark.parametrize("place", ["a file", "no bytecode"])
def test_where_nothing_can_be_written_nothing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
):
    monkeypatch.setattr(sys, "dont_write_bytecode", place == "no bytecode")
    if place == "a file":  # where the folder would be; root may write in any folder
        (tmp_path / "folder").write_text("")
    digests = DigestCache(tmp_path / "folder/code.json", "this code")
    digests.add("a", ["digest", []])
    digests.store()
    assert not (tmp_path / "folder/code.json").exists()
