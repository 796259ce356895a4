"""Write GGUF files by the text of ggml's specification, for tests of the reader."""

import struct
from pathlib import Path
from typing import Any

import numpy as np

F32, Q4_1, Q8_0 = 0, 3, 8
BLOCK_BYTES = {F32: (1, 4), Q4_1: (32, 20), Q8_0: (32, 34)}


def text(value: str) -> bytes:
    content = value.encode()
    return struct.pack("<Q", len(content)) + content


def typed(value: Any) -> bytes:
    """A value with its type before it: unsigned numbers of 4 bytes, floats of 4, texts, and lists
    of one of these.
    """
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + text(value)
    elements = [typed(element) for element in value]
    return (
        struct.pack("<I", 9)
        + elements[0][:4]
        + struct.pack("<Q", len(elements))
        + b"".join(e[4:] for e in elements)
    )


def make_gguf(
    values: dict[str, Any],
    tensors: dict[str, tuple[tuple[int, ...], int, bytes]],
    version: int = 3,
    alignment: int = 32,
    counts: tuple[int, int] | None = None,
    offsets: dict[str, int] | None = None,
) -> bytes:
    """A whole file; tensors: name -> (shape with the outermost dimension first, type, content).

    counts: (tensors, values) that it announces. offsets: of tensors, where it announces others than
    theirs.
    """
    n_tensors, n_values = counts or (len(tensors), len(values))
    head = b"GGUF" + struct.pack("<IQQ", version, n_tensors, n_values)
    head += b"".join(text(key) + typed(value) for key, value in values.items())
    body = b""
    for name, (shape, kind, content) in tensors.items():
        body += bytes(-len(body) % alignment)
        head += (
            text(name)
            + struct.pack("<I", len(shape))
            + b"".join(struct.pack("<Q", size) for size in shape[::-1])
        )
        head += struct.pack("<IQ", kind, (offsets or {}).get(name, len(body)))
        body += content
    return head + bytes(-len(head) % alignment) + body


def store_floats(weight: np.ndarray) -> tuple[tuple[int, ...], int, bytes]:
    return weight.shape, F32, weight.astype("<f4").tobytes()


def write_gguf(path: Path, *arguments: Any, **options: Any) -> Path:
    path.write_bytes(make_gguf(*arguments, **options))
    return path
