"""Source files whose sha256 is not known in advance, damaged: one line names the file, or it is
read as it is.
"""

import gzip
import importlib
import re
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.config.as_json import resolve_data
from tests.data import upstream_files
from tests.data.packing import pack
from tests.data.preparing import prepare_data, write_data
from tests.malformed.damages import Damage, flag_encrypted
from workflow_scripts.common.errors import UserError
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.data.sources.declared import load_sources
from workflow_scripts.data.stand_ins import cognition, wmt

# Tasks with sources that sources.yaml cannot pin, options with which few rows are enough, and what
# writes the files.
WMT = {
    side: {"archive": f"wmt/{name}", "files": {"en": f"{name}.en{end}", "fr": f"{name}.fr{end}"}}
    for side, name, end in (
        ("train", "training-giga-fren.tar", ".gz"),
        ("test", "test-full.tgz", ".sgm"),
    )
}
TASKS: dict[str, tuple[dict[str, Any], Callable[[Path], dict[str, Path]]]] = {
    "stsb": ({}, upstream_files.write),
    "amazon-video": ({"train": 10, "valid": 6, "test": 8}, upstream_files.write),
    "cognition": ({"from": "upstream"}, partial(cognition.write_cognition, seed=0)),
    "wmt14-en-fr": (
        {
            "from": "upstream",
            "corpora": [WMT["train"]],
            "test": WMT["test"],
            "merges": 150,
            "validation_every": 20,
        },
        lambda folder: wmt.write_wmt(
            folder, [tuple(WMT["train"].values())], tuple(WMT["test"].values())
        ),
    ),
}
TEXT: dict[str, Damage] = {
    "empty": lambda old: b"",
    "noise": lambda old: bytes(range(256)),
    "zeros": lambda old: bytes(500),
    "latin-1": lambda old: old + "é\n".encode("latin-1"),
    "utf-16": lambda old: old.decode("latin-1").encode("utf-16"),
    "half": lambda old: old[: len(old) // 2],
    "blank lines": lambda old: old.replace(b"\n", b"\n\n"),
    "a line less": lambda old: old.partition(b"\n")[2],
    "a line more": lambda old: old + b"x\n",
    "a long line": lambda old: old + b"x y " * 50_000,
    "cells less": lambda old: re.sub(rb"\t[^\t\n]*(?=\n)", b"", old),
    "cells more": lambda old: old.replace(b"\n", b"\tx\n"),
    "cells are empty": lambda old: re.sub(rb"(?<=\t)[^\t\n]+", b"", old),
    "numbers are texts": lambda old: re.sub(rb"[0-9]+", b"x", old),
    "numbers are large": lambda old: re.sub(rb"[0-9]+", b"9" * 20, old),
    "numbers are too large": lambda old: re.sub(rb"[0-9]+", b"9" * 5000, old[:2000]),
    "numbers are negative": lambda old: re.sub(rb"[0-9]+", rb"-\g<0>", old),
    "not a number": lambda old: re.sub(rb"[0-9]+", b"nan", old),
    "no brackets": lambda old: re.sub(rb"[()\[\]{}]", b"", old),
    "no words": lambda old: re.sub(rb"[A-Za-z]+", b"", old),
    "deep lists": lambda old: b"[" * 10**5,
    "deep trees": lambda old: b"(2 " * 10**5 + b"\n",
    "null": lambda old: re.sub(rb'"[^"]*"(?=[,}\]])', b"null", old),
    "lists": lambda old: re.sub(rb'"[^"]*"(?=[,}\]])', b"[1]", old),
    "mappings": lambda old: re.sub(rb'"[^"]*"(?=[,}\]])', b"{}", old),
    "NULs": lambda old: old.replace(b"e", b"\0"),
}
Members = list[tuple[str, bytes]]


def read_archive(archive: Path) -> Members:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as packed:
            return [(name, packed.read(name)) for name in packed.namelist()]
    with tarfile.open(archive) as tar:
        return [(entry.name, tar.extractfile(entry).read()) for entry in tar if entry.isfile()]


def flip(share: float) -> Damage:
    """Change the byte at this share of the file."""

    def damage(old: bytes) -> bytes:
        place = int(share * (len(old) - 1))
        return old[:place] + bytes([old[place] ^ 0x5A]) + old[place + 1 :]

    return damage


BYTES = {name: TEXT[name] for name in ("empty", "noise", "zeros", "half", "a line more")}
BYTES |= {
    f"a byte at {share:.0%}": flip(share) for share in (0, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 1)
}
BYTES |= {"encrypted": flag_encrypted}
MEMBERS: dict[str, Callable[[Members], Members]] = {
    "no members": lambda members: [],
    "other names": lambda members: [(f"{name}.old", content) for name, content in members],
    "every member twice": lambda members: members + members,
    "one less": lambda members: members[1:],
    "a bomb": lambda members: [(name, bytes(2**28 + 1)) for name, _ in members[:1]],
}


def list_damages(source: Path) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Yield what is wrong with a damaged file, and what makes its content."""
    old = source.read_bytes()
    packed = source.suffix in (".zip", ".gz", ".tgz", ".xz", ".tar")
    for name, damage in (BYTES if packed else TEXT).items():
        yield name, partial(damage, old)
    if source.name.endswith(".json.gz"):
        for name, damage in TEXT.items():
            yield (
                f"unpacked: {name}",
                lambda damage=damage: gzip.compress(damage(gzip.decompress(old))),
            )
    elif packed:
        members, new = read_archive(source), source.with_name(f"new-{source.name}")
        for name, change in MEMBERS.items():
            yield name, lambda change=change: pack(new, change(members)).read_bytes()
        for member, content in members[:5]:
            for name, damage in TEXT.items():
                yield (
                    f"{member}: {name}",
                    lambda member=member, content=content, damage=damage: pack(
                        new, dict(members) | {member: damage(content)}
                    ).read_bytes(),
                )


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("task", "every"),
    [(task, 17) for task in TASKS if task != "wmt14-en-fr"]
    + [pytest.param(t, 1, marks=pytest.mark.many) for t in TASKS],
)
def test_a_damaged_source_file_is_refused_in_a_line_or_read(tmp_path: Path, task: str, every: int):
    options, write = TASKS[task]
    spec = resolve_data(load_catalogue(), task, "demo")
    module, options = importlib.import_module(spec["prepare"]), spec["options"] | options
    (tmp_path / "sources").mkdir()
    found, data, wrong = write(tmp_path / "sources"), tmp_path / "data", []
    named = resolve_data(load_catalogue(), task, "full")["sources"]
    paths = {name: path for name, path in found.items() if name in named}
    write_data(prepare_data(module, options, paths), spec, data)  # undamaged
    unpinned = [path for name, path in paths.items() if load_sources()[name].sha256 is None]
    assert unpinned
    for path in unpinned:
        whole = path.read_bytes()
        for name, damage in list(list_damages(path))[::every]:
            path.write_bytes(damage())
            shutil.rmtree(data, ignore_errors=True)
            try:
                write_data(prepare_data(module, options, paths), spec, data)
            except UserError as error:
                known = [path.name for path in paths.values()] + [f"task {task}: split"]
                if "\n" in str(error) or not any(name in str(error) for name in known):
                    wrong.append(f"{path.name}, {name}: {error}")
            except (Exception, SystemExit) as error:
                wrong.append(f"{path.name}, {name}: {type(error).__name__}: {str(error)[:200]}")
        path.write_bytes(whole)
    assert not wrong, "\n".join(wrong)
