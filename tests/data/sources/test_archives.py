"""Reading wanted files out of folders and archives, whatever paths they claim."""

import gzip
import stat
import tarfile
import tempfile
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.data.packing import pack
from workflow_scripts.common.errors import UserError
from workflow_scripts.data.sources import archives
from workflow_scripts.data.sources.archives import (
    iterate_archive,
    read_lines,
    read_members,
    unpack_stream,
    unpack_zip,
)


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz", "a.tar.xz"])
def test_wanted_files_are_found_by_name_and_nothing_is_written(tmp_path, name):
    members = [
        ("../../dict/data.noun", b"nouns"),
        ("/etc/index.noun", b"index"),
        ("dict/other", b"no"),
    ]
    found = read_members(pack(tmp_path / name, members), {"data.noun", "index.noun"})
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
    data = pack(
        tmp_path / "data.tar.xz", [("./usr/share/wordnet/data.noun", b"nouns")]
    ).read_bytes()
    control = pack(tmp_path / "control.tar.xz", [("./data.noun", b"not this")]).read_bytes()
    members = [("debian-binary", b"2.0\n"), ("control.tar.xz/", control), ("data.tar.xz/", data)]
    assert read_members(debian_package(tmp_path / "a.deb", members), {"data.noun"}) == {
        "data.noun": b"nouns"
    }
    # an odd length, a name without its slash
    members = [
        ("debian-binary", b"2.0"),
        ("data.tar.xz", data),
    ]
    whole = debian_package(tmp_path / "b.deb", members)
    assert read_members(whole, {"data.noun"}) == {"data.noun": b"nouns"}
    content = whole.read_bytes()
    for name, damaged in (("none", content[:72]), ("half", content[:100]), ("head", b"!<arch>\nx")):
        (tmp_path / name).write_bytes(damaged)
        with pytest.raises(UserError, match=f"{name} cannot be read .*; fetch it again"):
            read_members(tmp_path / name, {"data.noun"})


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tar.gz", "a.tar.xz", "a.tar.bz2"])
@settings(max_examples=60)
@given(damage=st.data())
def test_who_reads_a_damaged_file_gets_one_line(tmp_path_factory, name, damage):
    """Its content is read outside of the iterator, which cannot see what fails there."""
    folder = tmp_path_factory.mktemp("damaged")
    whole = pack(folder / name, [("a/x", bytes(range(256)) * 64), ("a/y", b"y")]).read_bytes()
    place = damage.draw(st.integers(0, len(whole) - 1))
    content = whole[:place]
    if damage.draw(st.booleans()):
        content += bytes([damage.draw(st.integers(0, 255))]) + whole[place + 1 :]
    (folder / name).write_bytes(content)
    with suppress(UserError):
        for _member, stream in iterate_archive(folder / name):
            stream.read()


def test_links_are_not_followed(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        entry = tarfile.TarInfo("dict/data.noun")
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(entry)
    with pytest.raises(UserError, match=r"a.tar: has no file data.noun; fetch it again"):
        read_members(tmp_path / "a.tar", {"data.noun"})


def test_what_is_refused(tmp_path, monkeypatch):
    twice = pack(tmp_path / "twice.tar.gz", [("a/x", b"1"), ("b/x", b"2")])
    with pytest.raises(UserError, match=r"twice.tar.gz: holds two files x"):
        read_members(twice, {"x"})
    whole = pack(tmp_path / "whole.tar.gz", [("a/x", bytes(range(256)) * 64)])
    for name, content in (("half.tar.gz", whole.read_bytes()[:200]), ("text.zip", b"no archive")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UserError, match=f"{name} cannot be read .*; fetch it again"):
            read_members(tmp_path / name, {"x"})
    with pytest.raises(UserError, match=r"missing.zip cannot be read"):
        read_members(tmp_path / "missing.zip", {"x"})
    monkeypatch.setattr(archives, "LARGEST", 1000)
    with pytest.raises(UserError, match=r"whole.tar.gz: a/x has more than 1000 bytes"):
        read_members(whole, {"x"})


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz", "a.tar.xz", "a.tar.bz2", "lines.txt.gz"])
@pytest.mark.parametrize("bound", ["MAX_RATIO", "MAX_FILES"])
def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch, name, bound):
    monkeypatch.setattr(archives, "MIN_ALLOWED", 2**20)
    monkeypatch.setattr(archives, "MAX_FILES", 10)
    count = 11 if bound == "MAX_FILES" else 1
    if name == "lines.txt.gz":
        (tmp_path / name).write_bytes(gzip.compress(bytes(2**25)))
    else:
        pack(
            tmp_path / name, [(f"a/x{i}", bytes(2**25 if count == 1 else 10)) for i in range(count)]
        )
    with pytest.raises(
        UserError, match=f"{name} unpacks to more than [0-9,]* bytes or 10 files; do not use it"
    ):
        if name == "lines.txt.gz":
            with open(tmp_path / name, "rb") as stream:
                unpack_stream(stream, tmp_path / name).read()
        read_members(tmp_path / name, {"y"})


def link() -> zipfile.ZipInfo:
    """Return a member that unpacks to a symbolic link."""
    member = zipfile.ZipInfo("outside.txt")
    member.create_system, member.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    return member


@pytest.mark.parametrize(
    ("member", "problem"),
    [
        ("../outside.txt", "contains ../outside.txt, which would be written elsewhere"),
        ("/tmp/outside.txt", "contains /tmp/outside.txt, which would be written elsewhere"),
        ("a/../../outside.txt", "which would be written elsewhere"),
        ("a\\..\\b", "which would be written elsewhere"),
        (link(), "contains the link outside.txt"),
    ],
)
def test_a_member_that_leads_out_of_the_folder_is_refused_and_not_written(
    tmp_path, member, problem
):
    """What else can be wrong with a crate is tested by tests/malformed."""
    crate = pack(tmp_path / "crate.zip", [("before", b"x"), (member, b"/etc/passwd")])
    with pytest.raises(UserError, match=rf"crate.zip.* {problem}"):
        unpack_zip(crate, tmp_path / "unpacked")
    assert {path.name for path in tmp_path.rglob("*")} == {"crate.zip"}


@settings(max_examples=200)
@given(
    st.sampled_from(["zip", "tar", "tar.gz", "tar.xz"]),
    st.binary(min_size=1, max_size=4),
    st.floats(0, 1),
)
def test_any_damage_is_one_line(kind, damage, place):
    with tempfile.TemporaryDirectory() as folder:
        path = pack(
            Path(folder, f"a.{kind}"), [("d/" + "n" * 150, b"text " * 40), ("x", b"y" * 600)]
        )
        content = bytearray(path.read_bytes())
        start = int(place * (len(content) - len(damage)))
        content[start : start + len(damage)] = damage
        path.write_bytes(content)
        with suppress(UserError):
            read_members(path, {"x", "n" * 150})
        with suppress(UserError):
            list(read_lines(path, "x"))
        with suppress(UserError):
            unpack_zip(path, Path(folder))
