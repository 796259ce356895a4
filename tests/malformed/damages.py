"""What can be wrong with a file, by its format: name -> a function from its bytes to others; None
is a folder.
"""

import io
import json
import re
import zipfile
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from safetensors.torch import load, save

Damage = Callable[[bytes], bytes | None]
ANY: dict[str, Damage] = {
    "empty": lambda old: b"",
    "a folder": lambda old: None,
    "noise": lambda old: bytes(range(256)),
    "zeros": lambda old: bytes(500),
}
TEXT: dict[str, Damage] = ANY | {
    "latin-1": lambda old: "# Übung, é\n".encode("latin-1") + old,
    "utf-16": lambda old: old.decode().encode("utf-16"),
}
JSON: dict[str, Damage] = TEXT | {
    "half": lambda old: old[: len(old) // 2],
    "twice": lambda old: old + old,
    "deep lists": lambda old: b"[" * 10**5,
    "deep mappings": lambda old: b'{"a":' * 10**4 + b"1" + b"}" * 10**4,
    "60 levels": lambda old: b'{"spec": ' + b"[" * 60 + b"]" * 60 + b"}",
    "many digits": lambda old: b'{"seed": ' + b"1" * 10**4 + b"}",
    "a list": lambda old: b"[1]",
    "null": lambda old: b"null",
    "a text": lambda old: b'"task"',
    "a number": lambda old: b"NaN",
    "an empty mapping": lambda old: b"{}",
}
YAML: dict[str, Damage] = TEXT | {
    "a list": lambda old: b"- a",
    "a text": lambda old: b"lrf",
    "a date": lambda old: b"scale: 2026-01-01\npapers: 2026-01-01T00:00:00Z",
    "no such date": lambda old: old + b"\ndate: 2026-13-45",
    "octal": lambda old: b"scale: 0o17\nseeds: [012, 0x1F, 1_000, 190:20:30]",
    "odd keys": lambda old: b"{{ scale }}: demo\n? [a]\n: b",
    "a template": lambda old: b"{{ }}",
    "deep": lambda old: b"scale: " + b"[" * 10**5,
    "deep by indent": lambda old: b"".join(b" " * level + b"a:\n" for level in range(2000)),
    "aliases": lambda old: (
        b"a: &a [x, x, x, x, x, x, x, x, x]\n"
        + b"".join(
            b"%c: &%c [%s]\n" % (c, c, b", ".join([b"*%c" % (c - 1)] * 9)) for c in b"bcdefghi"
        )
    ),
    "an alias of itself": lambda old: b"a: &a [*a]",
    "no such alias": lambda old: b"scale: *nothing",
    "a tag": lambda old: b"scale: !!python/object/apply:os.system ['touch owned']",
    "two documents": lambda old: b"scale: demo\n---\nscale: small",
    "a tab": lambda old: b"scale:\n\t- demo",
    "a key twice": lambda old: old + b"\n" + old,
    "an unknown key": lambda old: old + b"\nno_such_key: 1\n",
    "a binary": lambda old: b"scale: !!binary aGVsbG8=",
    "a set": lambda old: b"scale: !!set {a, b}",
    "nothing for lists and mappings": lambda old: re.sub(
        rb"(?m)^( +[a-z]+:) [\[{].*$", rb"\1", old
    ),
}
CSV: dict[str, Damage] = TEXT | {
    "no header": lambda old: b"".join(old.splitlines(keepends=True)[1:]) or b"x",
    "a column less": lambda old: b"\n".join(line.partition(b",")[2] for line in old.splitlines()),
    "a column more": lambda old: (
        b"\n".join(line + b",1" for line in old.splitlines()[:1]) + b"\n" + old.partition(b"\n")[2]
    ),
    "a cell more": lambda old: old + old.splitlines()[-1] + b",1,2\n",
    "a cell alone": lambda old: old + b"x\n",
    "an open quote": lambda old: old + b'"x,1\n',
    "a large cell": lambda old: (
        old + b"x" * 200_000 + b"," * old.splitlines()[0].count(b",") + b"\n"
    ),
    "a row twice": lambda old: old + old.splitlines()[-1] + b"\n",
    "a NUL": lambda old: old + b"\0\n",
    "numbers are texts": lambda old: re.sub(rb"(?<=,)-?[0-9.]+(?=[,\r\n])", b"x", old),
    "numbers are no numbers": lambda old: re.sub(rb"(?<=,)-?[0-9.]+(?=[,\r\n])", b"nan", old),
    "numbers are infinite": lambda old: re.sub(rb"(?<=,)-?[0-9.]+(?=[,\r\n])", b"1e999", old),
    "numbers are negative": lambda old: re.sub(rb"(?<=,)-?([0-9.]+)(?=[,\r\n])", rb"-\1", old),
    "cells are empty": lambda old: re.sub(rb"(?<=,)[^,\r\n]+(?=[,\r\n])", b"", old),
}


def change_table(change: Callable[[pa.Table], pa.Table]) -> Damage:
    """Write another table to a Parquet file."""

    def damage(old: bytes) -> bytes:
        stream = io.BytesIO()
        pq.write_table(change(pq.read_table(io.BytesIO(old))), stream)
        return stream.getvalue()

    return damage


def fill(kinds: Callable[[pa.DataType], bool], value: object, kind: pa.DataType) -> Damage:
    """Set all columns of some types to one value of a type."""

    def change(table: pa.Table) -> pa.Table:
        for place, field in enumerate(table.schema):
            if kinds(field.type):
                table = table.set_column(place, field.name, pa.array([value] * len(table), kind))
        return table

    return change_table(change)


def encode_names_otherwise(old: bytes) -> bytes:
    """Write column names that begin with bytes that are no UTF-8."""
    return change_table(
        lambda table: table.rename_columns([f"é{name}" for name in table.column_names])
    )(old).replace("é".encode(), b"\xff\xfe")


NUMBERS = pa.list_(pa.int32())
PARQUET: dict[str, Damage] = ANY | {
    "half": lambda old: old[: len(old) // 2],
    "its end alone": lambda old: old[-200:],
    "no columns": change_table(lambda table: table.select([])),
    "other columns": change_table(
        lambda table: table.rename_columns([f"x_{name}" for name in table.column_names])
    ),
    "names in another encoding": encode_names_otherwise,
    "no rows": change_table(lambda table: table.slice(0, 0)),
    "texts are numbers": fill(pa.types.is_string, 1, pa.int64()),
    "texts are nothing": fill(pa.types.is_string, None, pa.string()),
    "texts are lists": fill(pa.types.is_string, ["a"], pa.list_(pa.string())),
    "texts are bytes": fill(pa.types.is_string, b"\xff", pa.binary()),
    "lists are texts": fill(pa.types.is_list, "1 2", pa.string()),
    "lists are nothing": fill(pa.types.is_list, None, NUMBERS),
    "lists of nothing": fill(pa.types.is_list, [None], NUMBERS),
    "lists of texts": fill(pa.types.is_list, ["x"], pa.list_(pa.string())),
    "lists of fractions": fill(pa.types.is_list, [0.5], pa.list_(pa.float64())),
    "lists of large numbers": fill(pa.types.is_list, [10**9], NUMBERS),
    "lists of negative numbers": fill(pa.types.is_list, [-5], NUMBERS),
}


def change_tensors(change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]) -> Damage:
    """Write other tensors to a safetensors file."""
    return lambda old: save(change(load(old)), {"format": "pt"})


SAFETENSORS: dict[str, Damage] = ANY | {
    "half": lambda old: old[: len(old) // 2],
    "a byte less": lambda old: old[:-1],
    "a byte more": lambda old: old + b"x",
    "a long header": lambda old: b"\xff" * 8 + old[8:],
    "no tensors": change_tensors(lambda tensors: {}),
    "other names": change_tensors(
        lambda tensors: {f"x.{name}": tensor for name, tensor in tensors.items()}
    ),
    "one less": change_tensors(lambda tensors: dict(list(tensors.items())[1:])),
    "other shapes": change_tensors(
        lambda tensors: {name: tensor[..., :1].clone() for name, tensor in tensors.items()}
    ),
    "scalars": change_tensors(lambda tensors: {name: torch.zeros(()) for name in tensors}),
    "not a number": change_tensors(
        lambda tensors: {n: torch.full_like(t, torch.nan) for n, t in tensors.items()}
    ),
    "whole numbers": change_tensors(
        lambda tensors: {name: tensor.long() for name, tensor in tensors.items()}
    ),
}


def pack(members: list[tuple[str, bytes]], add: bool = False) -> Damage:
    """Write a zip archive of these members, or add them to the old one."""

    def damage(old: bytes) -> bytes:
        stream = io.BytesIO(old if add else b"")
        with zipfile.ZipFile(stream, "a" if add else "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members:
                archive.writestr(name, content)
        return stream.getvalue()

    return damage


def flag_encrypted(old: bytes) -> bytes:
    """Set the bit of encryption of all members, in their own headers and in the directory."""
    new = bytearray(old)
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = new.find(mark)
        while at >= 0:
            new[at + offset] |= 1
            at = new.find(mark, at + 4)
    return bytes(new)


METADATA = "ro-crate-metadata.json"
ZIP: dict[str, Damage] = {name: change for name, change in ANY.items() if name != "a folder"} | {
    "half": lambda old: old[: len(old) // 2],
    "its start is cut": lambda old: old[50:],
    "twice": lambda old: old + old[:-22],
    "encrypted": flag_encrypted,
    "a file twice": pack([("README.md", b"x")], add=True),
    "an absolute path": pack([("/tmp/owned", b"x")], add=True),
    "outside": pack([("../../owned", b"x")], add=True),
    "outside from within": pack([("a/../../owned", b"x")], add=True),
    "a drive": pack([("C:\\owned", b"x")], add=True),
    "a bomb": pack([("zeros", bytes(2**29))]),
    "a long name": pack([("x" * 300, b"x")], add=True),
    "a file in a file": pack([("README.md/x", b"x")], add=True),
    "no members": pack([]),
    "an odd name": pack([("a;$(id)\n é", b"x")], add=True),
    "deep metadata": pack([(METADATA, b"[" * 10**5)]),
    "metadata in another encoding": pack([(METADATA, '{"@graph": "é"}'.encode("latin-1"))]),
    "metadata of no mapping": pack([(METADATA, b"[]")]),
    "a graph of texts": pack([(METADATA, b'{"@graph": ["sha256"]}')]),
    "a graph of numbers": pack([(METADATA, b'{"@graph": 1}')]),
    "a checksum of a list": pack([(METADATA, b'{"@graph": [{"@id": [1], "sha256": [1]}]}')]),
    "a file that it lists is outside": pack(
        [(METADATA, b'{"@graph": [{"@id": "/etc/passwd", "sha256": "0"}]}')]
    ),
}
# Of tables of which only the lists of ids, or only the texts, are read.
IDS = {name: damage for name, damage in PARQUET.items() if not name.startswith("texts")}
TEXTS = {name: damage for name, damage in PARQUET.items() if not name.startswith("lists")}
# cast when read
HUB_WEIGHTS = {name: damage for name, damage in SAFETENSORS.items() if name != "whole numbers"}
FORMATS = {
    "hub_weights": HUB_WEIGHTS,
    "ids": IDS,
    "texts": TEXTS,
    "json": JSON,
    "yaml": YAML,
    "csv": CSV,
    "parquet": PARQUET,
    "safetensors": SAFETENSORS,
    "zip": ZIP,
    "text": TEXT,
}


def set_key(old: bytes, key: str, value: object, remove: bool = False) -> bytes:
    """Set a key of a JSON file, such as `training.betas`, or remove it."""
    content = json.loads(old)
    *outer, last = key.split(".")
    inner = content
    for name in outer:
        inner = inner[name]
    if remove:
        del inner[last]
    else:
        inner[last] = value
    return json.dumps(content).encode()
