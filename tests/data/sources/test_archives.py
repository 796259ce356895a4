"""Reading wanted files out of folders and archives, whatever paths they claim."""

import io
import tarfile
import zipfile

import pytest

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.sources import archives
from workflow_scripts.data.sources.archives import read_members


def packed(path, members: list[tuple[str, bytes]]):
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in members:
                archive.writestr(name, content)
    else:
        with tarfile.open(path, f"w:{path.suffix[1:]}") as archive:
            for name, content in members:
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    return path


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz", "a.tar.xz"])
def test_wanted_files_are_found_by_name_and_nothing_is_written(tmp_path, name):
    members = [("../../dict/data.noun", b"nouns"), ("/etc/index.noun", b"index"), ("dict/other", b"no")]
    found = read_members(packed(tmp_path / name, members), {"data.noun", "index.noun", "data.verb"})
    assert found == {"data.noun": b"nouns", "index.noun": b"index"}
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_folder(tmp_path):
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper/data.noun").write_bytes(b"not this")
    (tmp_path / "data.noun").write_bytes(b"nouns")
    assert read_members(tmp_path, {"data.noun"}) == {"data.noun": b"nouns"}


def debian_package(path, members: list[tuple[str, bytes]]):
    """deb(5): an ar archive, whose members begin at even offsets."""
    with path.open("wb") as file:
        file.write(b"!<arch>\n")
        for name, content in members:
            file.write(f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode())
            file.write(content + b"\n" * (len(content) % 2))
    return path


def test_a_debian_package(tmp_path):
    data = packed(tmp_path / "data.tar.xz", [("./usr/share/wordnet/data.noun", b"nouns")]).read_bytes()
    control = packed(tmp_path / "control.tar.xz", [("./data.noun", b"not this")]).read_bytes()
    members = [("debian-binary", b"2.0\n"), ("control.tar.xz/", control), ("data.tar.xz/", data)]
    assert read_members(debian_package(tmp_path / "a.deb", members), {"data.noun"}) == {"data.noun": b"nouns"}
    members = [("debian-binary", b"2.0"), ("data.tar.xz", data)]  # an odd length, a name without its slash
    whole = debian_package(tmp_path / "b.deb", members)
    assert read_members(whole, {"data.noun"}) == {"data.noun": b"nouns"}
    for name, content in {
        "none": whole.read_bytes()[:72],
        "half": whole.read_bytes()[:100],
        "head": b"!<arch>\nx",
    }.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UserError, match=f"{name} cannot be read .*; fetch it again"):
            read_members(tmp_path / name, {"data.noun"})


def test_links_are_not_followed(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        entry = tarfile.TarInfo("dict/data.noun")
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(entry)
    assert read_members(tmp_path / "a.tar", {"data.noun"}) == {}


def test_what_is_refused(tmp_path, monkeypatch):
    twice = packed(tmp_path / "twice.tar.gz", [("a/x", b"1"), ("b/x", b"2")])
    with pytest.raises(UserError, match=r"twice.tar.gz: holds two files x"):
        read_members(twice, {"x"})
    whole = packed(tmp_path / "whole.tar.gz", [("a/x", bytes(range(256)) * 64)])
    for name, content in (("half.tar.gz", whole.read_bytes()[:200]), ("text.zip", b"no archive")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(
            UserError,
            match=f"{name} cannot be read .*; fetch it again",
        ):
            read_members(tmp_path / name, {"x"})
    with pytest.raises(UserError, match=r"missing.zip cannot be read"):
        read_members(tmp_path / "missing.zip", {"x"})
    monkeypatch.setattr(archives, "LARGEST", 1000)
    with pytest.raises(UserError, match=r"whole.tar.gz: a/x has 16384 bytes, more than 1000"):
        read_members(whole, {"x"})
