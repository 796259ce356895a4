"""Upstream's files, damaged although their checksum is right: one line names the file, or it is read as it is."""

import gzip
import importlib
import re
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.data import upstream_files
from tests.data.packing import pack
from tests.malformed.damages import Damage, flag_encrypted
from workflow_scripts.common.errors import UserError
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.specs import resolve_data
from workflow_scripts.data.prepared import prepare_data, write_data
from workflow_scripts.data.stand_ins import bird, cfq, cognition, cogs, paws, sememes, squad, sst, wmt, wordnet

# The options with which a task can be prepared from few rows, and what writes its source files.
WMT = {
    side: {"archive": f"wmt/{name}", "files": {"en": f"{name}.en{end}", "fr": f"{name}.fr{end}"}}
    for side, name, end in (("train", "giga.tar", ".gz"), ("test", "test.tgz", ".sgm"))
}
STAND_INS: dict[str, tuple[dict[str, Any], Callable[[Path], dict[str, Path]]]] = {
    "bird": ({}, bird.write_bird),
    "cfq-mcd1": ({}, partial(cfq.write_cfq, seed=0)),
    "cognition": ({}, partial(cognition.write_cognition, seed=0)),
    "cogs": ({"limit": {"train": 300, "test": 210}}, partial(cogs.write_cogs, seed=0)),
    "idm": ({}, wordnet.write_wordnet),
    "pairs-wordpiece": ({}, lambda folder: wordnet.write_wordnet(folder) | sememes.write_sememes(folder)),
    "paws": ({"set": "dev_test", "validation": 80}, partial(paws.write_paws, seed=0)),
    "squad": ({"validation": 40}, partial(squad.write_squad, seed=0)),
    "sst": ({}, sst.write_sst),
    "wmt14-en-fr": (
        {"corpora": [WMT["train"]], "test": WMT["test"], "merges": 150, "validation_every": 20},
        lambda folder: wmt.write_wmt(folder, [tuple(WMT["train"].values())], tuple(WMT["test"].values())),
    ),
}
UPSTREAM: dict[str, dict[str, Any]] = {
    "paws": {},
    "sst2": {"test": 8},
    "stsb": {},
    "imdb-sst2": {},
    "mnli-letters": {"train": 5},
    "amazon-video": {"train": 10, "valid": 6, "test": 8},
    "glue-cola": {"validation": 6},
    "glue-mnli": {"validation": 6},
    "glue-mrpc": {},
    "glue-qnli": {"validation": 6},
    "glue-qqp": {"validation": 6},
    "glue-rte": {"validation": 6},
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
BYTES |= {f"a byte at {share:.0%}": flip(share) for share in (0, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 1)}
BYTES |= {"encrypted": flag_encrypted}
MEMBERS: dict[str, Callable[[Members], Members]] = {
    "no members": lambda members: [],
    "other names": lambda members: [(f"{name}.old", content) for name, content in members],
    "every member twice": lambda members: members + members,
    "one less": lambda members: members[1:],
    "a bomb": lambda members: [(name, bytes(2**28 + 1)) for name, _ in members[:1]],
}


@dataclass
class Sources:
    """What a task is prepared from: its data spec, and the paths of its source files by their names."""

    spec: dict[str, Any]
    paths: dict[str, Path]


def find_sources(folder: Path) -> dict[str, Sources]:
    """Write the source files of all tasks. The stand-in folder of an archive is packed."""
    catalogue, upstream = load_catalogue(), upstream_files.write(folder)
    found = {}
    for task, options in UPSTREAM.items():
        spec = resolve_data(catalogue, task, "full")
        spec["options"] |= options
        found[f"{task} at full"] = Sources(spec, {name: upstream[name] for name in spec["sources"]})
    for task, (options, write) in STAND_INS.items():
        spec = resolve_data(catalogue, task, "demo")
        spec["options"] |= options | ({} if task == "pairs-wordpiece" else {"from": "upstream"})
        place = folder / "stand-ins" / task
        place.mkdir(parents=True)
        paths = write(place)
        for name in [name for name, path in paths.items() if path.is_dir()]:
            members = {file.name: file.read_bytes() for file in sorted(paths[name].iterdir())}
            paths[name] = pack(place / Path(name).name, members)
        found[task] = Sources(spec, paths)
    return found


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Sources]:
    return find_sources(tmp_path_factory.mktemp("sources"))


def prepare(task: Sources, out: Path) -> None:
    made = prepare_data(importlib.import_module(task.spec["prepare"]), task.spec["options"], task.paths)
    write_data(made, task.spec, out)


def list_damages(source: Path) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Yield what is wrong with a damaged file, and what makes its content."""
    old = source.read_bytes()
    packed = source.suffix in (".zip", ".gz", ".tgz", ".xz", ".tar")
    for name, damage in (BYTES if packed else TEXT).items():
        yield name, partial(damage, old)
    if source.name.endswith(".json.gz"):
        for name, damage in TEXT.items():
            yield f"unpacked: {name}", lambda damage=damage: gzip.compress(damage(gzip.decompress(old)))
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


TASKS = [*(f"{task} at full" for task in UPSTREAM), *STAND_INS]
SLOW = {"wmt14-en-fr", "pairs-wordpiece"}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("task", "every"),
    [(task, 17) for task in TASKS if task not in SLOW] + [pytest.param(t, 1, marks=pytest.mark.many) for t in TASKS],
)
def test_a_damaged_source_file_is_refused_in_a_line_or_read(
    tasks: dict[str, Sources], tmp_path: Path, task: str, every: int
):
    sources, wrong = tasks[task], []
    names = [path.name for path in sources.paths.values()] + [f"task {sources.spec['task']}: split"]
    prepare(sources, tmp_path / "whole")
    for path in sources.paths.values():
        whole = path.read_bytes()
        for name, damage in list(list_damages(path))[::every]:
            path.write_bytes(damage())
            try:
                prepare(sources, tmp_path / "data")
            except UserError as error:
                if "\n" in str(error) or not any(name in str(error) for name in names):
                    wrong.append(f"{path.name}, {name}: {error}")
            except (Exception, SystemExit) as error:
                wrong.append(f"{path.name}, {name}: {type(error).__name__}: {str(error)[:200]}")
            shutil.rmtree(tmp_path / "data", ignore_errors=True)
        path.write_bytes(whole)
    assert not wrong, "\n".join(wrong)
    assert [file.name for file in tmp_path.iterdir()] == ["whole"]
