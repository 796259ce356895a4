"""Read GGUF files, the model files of llama.cpp, without trusting their content.

Nothing is read or allocated before it is known to be inside the file, whatever its counts, lengths,
offsets and types say. Format: ggml's specification of GGUF, version 3.
"""

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.sources.archives import report_broken

MAGIC = b"GGUF"
VERSION = 3
MAX_KEYS = 1000
MAX_TENSORS = 10_000
MAX_DIMENSIONS = 4
# Bytes of a name or a text; the longest needed, a chat template, has a few thousand.
LONGEST_TEXT = 2**16
# Elements; the longest needed, the tokens of a vocabulary, are 50 to 250 thousand.
LONGEST_ARRAY = 2**20
TEXT = 8
ARRAY = 9
# Formats of the other types of values, by their numbers.
NUMBERS = dict(enumerate(["<B", "<b", "<H", "<h", "<I", "<i", "<f", "<?"]))
NUMBERS |= {10: "<Q", 11: "<q", 12: "<d"}
DEFAULT_ALIGNMENT = 32
QUANTISED_BLOCK = 32  # values that are quantised together, in Q4_1 and Q8_0


@dataclass(frozen=True)
class Encoding:
    """How values are stored: in blocks of `block_values` values, of `block_bytes` bytes each.

    decode: n blocks, [n, block_bytes] uint8 -> [n, block_values] float32.
    """

    name: str
    block_values: int
    block_bytes: int
    decode: Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class StoredTensor:
    """A tensor of the file.

    shape: outermost dimension first. offset: bytes from the start of the file.
    """

    name: str
    shape: tuple[int, ...]
    encoding: Encoding
    offset: int

    @property
    def bytes(self) -> int:
        """Number of bytes in the file."""
        n_blocks = math.prod(self.shape) // self.encoding.block_values
        return n_blocks * self.encoding.block_bytes


@dataclass(frozen=True)
class Gguf:
    """Content of a file: values by key, and tensors by name, which are read by `read_tensor`."""

    path: Path
    values: dict[str, Any]
    tensors: dict[str, StoredTensor]

    def read_tensor(self, name: str) -> np.ndarray:
        """Read a tensor as float32 of its shape."""
        tensor = self.tensors[name]
        with report_broken(self.path):
            stored = np.fromfile(self.path, np.uint8, count=tensor.bytes, offset=tensor.offset)
        blocks = stored.reshape(-1, tensor.encoding.block_bytes)
        values = tensor.encoding.decode(blocks)
        return values.reshape(tensor.shape)


def read_gguf(path: Path) -> Gguf:
    """Read the values and the list of tensors.

    Raises UserError if the file is missing, damaged or of another kind.
    """
    with report_broken(path), open(path, "rb") as stream:
        reader = _Reader(path, stream, path.stat().st_size)
        if reader.read(4) != MAGIC:
            raise reader.report("does not begin with GGUF")
        if (version := reader.read_number("<I")) != VERSION:
            raise reader.report(f"has version {version}, not {VERSION}")
        n_tensors = reader.read_count(MAX_TENSORS, 24, "tensors")
        n_keys = reader.read_count(MAX_KEYS, 13, "keys")
        values: dict[str, Any] = {}
        for _ in range(n_keys):
            key = reader.read_text()
            if key in values:
                raise reader.report(f"has the key {key!r} twice")
            values[key] = reader.read_value(reader.read_number("<I"))
        entries = [reader.read_tensor_entry() for _ in range(n_tensors)]
        alignment = values.get("general.alignment", DEFAULT_ALIGNMENT)
        return Gguf(path, values, _place_tensors(reader, entries, alignment))


def _place_tensors(
    reader: "_Reader", entries: list[StoredTensor], alignment: Any
) -> dict[str, StoredTensor]:
    """Return the tensors by name, with offsets from the start of the file.

    entries: with offsets from the start of the first tensor, in bytes, as in the file. Raises
    UserError unless the tensors are inside the file and do not overlap.
    """
    if not (type(alignment) is int and 8 <= alignment <= 4096 and alignment % 8 == 0):
        raise reader.report(
            f"has general.alignment {alignment!r}, which is no multiple of 8 up to 4096"
        )
    # The tensors begin at the next multiple of the alignment after the head.
    start = math.ceil(reader.position / alignment) * alignment
    tensors: dict[str, StoredTensor] = {}
    for entry in entries:
        if entry.name in tensors:
            raise reader.report(f"has the tensor {entry.name!r} twice")
        if entry.offset % alignment:
            raise reader.report(
                f"has the tensor {entry.name!r} at {entry.offset}, no multiple of {alignment}"
            )
        tensor = replace(entry, offset=start + entry.offset)
        if tensor.offset + tensor.bytes > reader.size:
            raise reader.report(f"ends before the end of the tensor {tensor.name!r}")
        tensors[tensor.name] = tensor
    by_offset = sorted(tensors.values(), key=lambda tensor: tensor.offset)
    for tensor, following in pairwise(by_offset):
        if tensor.offset + tensor.bytes > following.offset:
            raise reader.report(
                f"has the tensors {tensor.name!r} and {following.name!r} in the same place"
            )
    return tensors


class _Reader:
    """Reads the head of a file of `size` bytes.

    What would be beyond its end is refused before it is read.
    """

    def __init__(self, path: Path, stream: IO[bytes], size: int) -> None:
        self.path = path
        self.stream = stream
        self.size = size
        self.position = 0

    def report(self, problem: str) -> UserError:
        """Return the error that names the file and a problem of it."""
        return UserError(
            f"{self.path} {problem}; it is no GGUF file that can be read here, fetch it again"
        )

    def read(self, length: int) -> bytes:
        """Read that many bytes. Raises UserError if the file has fewer."""
        if length > self.size - self.position:
            raise self.report(f"ends where {length} bytes should follow byte {self.position}")
        self.position += length
        return self.stream.read(length)

    def read_number(self, form: str) -> Any:
        """Read a number of this format of `struct`."""
        return struct.unpack(form, self.read(struct.calcsize(form)))[0]

    def read_count(self, limit: int, least_bytes: int, unit: str) -> int:
        """Read how many things follow.

        limit: the most that are accepted. least_bytes: of one thing. unit: their name in the
        message. Raises UserError for more, or for more than the rest of the file has room for.
        """
        count = self.read_number("<Q")
        if count > limit or count * least_bytes > self.size - self.position:
            raise self.report(f"announces {count} {unit}")
        return count

    def read_text(self) -> str:
        """Read a text."""
        content = self.read(self.read_count(LONGEST_TEXT, 1, "bytes of text"))
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError:
            raise self.report(f"has a text before byte {self.position} that is not UTF-8") from None

    def read_value(self, kind: int) -> Any:
        """Read a value of the type of this number.

        It is a number, a truth value, a text, or a list of them.
        """
        if kind == TEXT:
            return self.read_text()
        if kind != ARRAY:
            return self.read_number(self._find_format(kind))
        element_kind = self.read_number("<I")
        if element_kind == TEXT:
            count = self.read_count(LONGEST_ARRAY, 8, "texts")
            return [self.read_text() for _ in range(count)]
        form = self._find_format(element_kind)
        size = struct.calcsize(form)
        count = self.read_count(LONGEST_ARRAY, size, "numbers")
        return [value for (value,) in struct.iter_unpack(form, self.read(count * size))]

    def _find_format(self, number: int) -> str:
        """Return the format of `struct` of the type of this number. Raises UserError for others."""
        if number not in NUMBERS:
            raise self.report(
                f"has a value of the unknown type {number} before byte {self.position}"
            )
        return NUMBERS[number]

    def read_tensor_entry(self) -> StoredTensor:
        """Read the entry of a tensor, with its offset from the first tensor."""
        name = self.read_text()
        if (dimensions := self.read_number("<I")) not in range(1, MAX_DIMENSIONS + 1):
            raise self.report(f"has the tensor {name!r} of {dimensions} dimensions")
        sizes = [self.read_number("<Q") for _ in range(dimensions)]  # innermost first
        number = self.read_number("<I")
        offset = self.read_number("<Q")
        if number not in ENCODINGS:
            names = ", ".join(encoding.name for encoding in ENCODINGS.values())
            raise self.report(f"has the tensor {name!r} of the type {number}, not {names}")
        encoding = ENCODINGS[number]
        if min(sizes) < 1 or sizes[0] % encoding.block_values:
            raise self.report(f"has the tensor {name!r} of the shape {sizes}")
        return StoredTensor(name, tuple(reversed(sizes)), encoding, offset)


def _decode_float16(stored: np.ndarray) -> np.ndarray:
    """Return float16 numbers [n, m] stored as bytes [n, 2 m], as float32."""
    return np.ascontiguousarray(stored).view("<f2").astype(np.float32)


def _decode_float32(stored: np.ndarray) -> np.ndarray:
    """Return float32 numbers [n, m] stored as bytes [n, 4 m]."""
    return np.ascontiguousarray(stored).view("<f4").astype(np.float32)


def _decode_q4_1(blocks: np.ndarray) -> np.ndarray:
    """Return scale * q + smallest, [n, 32], of blocks [n, 20].

    A block has a scale and a smallest value in float16, and 16 bytes. Byte i has the q of two
    values: its low four bits are that of value i, its high four bits that of value i + 16.
    """
    scale = _decode_float16(blocks[:, :2])
    smallest = _decode_float16(blocks[:, 2:4])
    packed = blocks[:, 4:]
    low_bits = packed & 15
    high_bits = packed >> 4
    quantised = np.concatenate([low_bits, high_bits], axis=1).astype(np.float32)
    return scale * quantised + smallest


def _decode_q8_0(blocks: np.ndarray) -> np.ndarray:
    """Return scale * q, [n, 32], of blocks [n, 34]: a scale in float16, and 32 int8 q."""
    scale = _decode_float16(blocks[:, :2])
    quantised = blocks[:, 2:].view(np.int8).astype(np.float32)
    return scale * quantised


ENCODINGS = {  # by the numbers of their types in a file
    0: Encoding("F32", 1, 4, _decode_float32),
    3: Encoding("Q4_1", QUANTISED_BLOCK, 20, _decode_q4_1),
    8: Encoding("Q8_0", QUANTISED_BLOCK, 34, _decode_q8_0),
}
