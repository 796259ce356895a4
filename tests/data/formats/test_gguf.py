"""GGUF files: values and tensors as the specification stores them, and files that announce more
than they have.
"""

import math
import random
import struct
from contextlib import suppress

import numpy as np
import pytest

from tests.data.gguf_files import F32, Q4_1, Q8_0, make_gguf, store_floats, write_gguf
from workflow_scripts.common.errors import UserError
from workflow_scripts.data.formats.gguf import read_gguf

VALUES = {
    "general.architecture": "llama",
    "a": 7,
    "b": 0.5,
    "c": True,
    "d": ["x", "é", ""],
    "e": [3, 1],
}


def test_values_and_tensors(tmp_path):
    weight = np.arange(12, dtype=np.float32).reshape(3, 4) / 7
    found = read_gguf(
        write_gguf(
            tmp_path / "a.gguf", VALUES, {"w": store_floats(weight), "v": store_floats(weight[0])}
        )
    )
    assert found.values == VALUES
    assert {name: tensor.shape for name, tensor in found.tensors.items()} == {
        "w": (3, 4),
        "v": (4,),
    }
    np.testing.assert_array_equal(found.read_tensor("w"), weight)
    np.testing.assert_array_equal(found.read_tensor("v"), weight[0])


def half(number: float) -> bytes:
    return struct.pack("<e", number)


def test_quantised_blocks_are_decoded_as_the_specification_says(tmp_path):
    """One value at a time: of Q4_1 the 16 lower halves of the bytes come first, then the 16 upper
    ones.
    """
    draw = random.Random(1)
    q4, q8, expected4, expected8 = b"", b"", [], []
    for _ in range(6):
        scale, smallest = struct.unpack(
            "<ee", half(draw.uniform(-1, 1)) + half(draw.uniform(-1, 1))
        )
        numbers = [draw.randrange(16) for _ in range(32)]
        q4 += (
            half(scale)
            + half(smallest)
            + bytes(numbers[k] + 16 * numbers[k + 16] for k in range(16))
        )
        expected4 += [scale * number + smallest for number in numbers]
        signed = [draw.randrange(-128, 128) for _ in range(32)]
        q8 += half(scale) + struct.pack("<32b", *signed)
        expected8 += [scale * number for number in signed]
    file = write_gguf(
        tmp_path / "a.gguf", {}, {"four": ((3, 64), Q4_1, q4), "eight": ((2, 96), Q8_0, q8)}
    )
    found = read_gguf(file)
    np.testing.assert_allclose(found.read_tensor("four").ravel(), expected4, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(found.read_tensor("eight").ravel(), expected8, rtol=1e-6, atol=1e-7)


ONE = {"w": store_floats(np.zeros((2, 32)))}
TWO = ONE | {"v": ONE["w"]}
HUGE = 2**62
# begin a list of one text, of one number
TEXTS, NUMBERS = (
    struct.pack("<IQ", 8, 1),
    struct.pack("<IQ", 4, 1),
)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"GGML" + bytes(40), "does not begin with GGUF"),
        (make_gguf({}, ONE, version=2), "has version 2, not 3"),
        (make_gguf({}, ONE, counts=(HUGE, 0)), f"announces {HUGE} tensors"),
        (make_gguf({}, ONE, counts=(1, HUGE)), f"announces {HUGE} keys"),
        (make_gguf({"a": 1}, ONE, counts=(1, 2)), "announces|unknown type|ends where"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, HUGE) + bytes(40), f"announces {HUGE} bytes of text"),
        (make_gguf({"a": ["x"]}, {}).replace(TEXTS, TEXTS[:4] + struct.pack("<Q", HUGE)), "announces .* texts"),
        (make_gguf({"a": [1]}, {}).replace(NUMBERS, NUMBERS[:4] + struct.pack("<Q", HUGE)), "announces .* numbers"),
        (make_gguf({"a": [1]}, {}).replace(NUMBERS, b"\x09" + NUMBERS[1:]), "unknown type 9"),
        (make_gguf({"a": "x"}, {}).replace(text := struct.pack("<Q", 1) + b"x", text[:8] + b"\xff"), "not UTF-8"),
        (make_gguf({}, {"w": ((HUGE, HUGE), F32, b"")}), "ends before the end of the tensor 'w'"),
        (make_gguf({}, {"w": ((0, 4), F32, b"")}), r"'w' of the shape \[4, 0\]"),
        (make_gguf({}, {"w": ((4, 33), Q8_0, bytes(200))}), r"'w' of the shape \[33, 4\]"),
        (make_gguf({}, {"w": ((1, 1, 1, 1, 1), F32, bytes(4))}), "of 5 dimensions"),
        (make_gguf({}, {"w": ((4,), 12, bytes(16))}), "of the type 12, not F32, Q4_1, Q8_0"),
        (make_gguf({}, ONE)[:-1], "ends before the end of the tensor 'w'"),
        (make_gguf({"general.alignment": 12}, ONE), "general.alignment 12"),
        (make_gguf({"general.alignment": "x"}, ONE), "general.alignment 'x'"),
        (make_gguf({}, TWO, offsets={"v": 32}), "'w' and 'v' in the same place"),
        (make_gguf({}, TWO, offsets={"v": 3}), "'v' at 3, no multiple of 32"),
        (make_gguf({}, TWO, offsets={"v": HUGE}), "ends before the end of the tensor 'v'"),
        (make_gguf({}, TWO).replace(b"v" + struct.pack("<I", 2), b"w" + struct.pack("<I", 2)), "'w' twice"),
        (make_gguf({"a": 1, "b": 2}, {}).replace(b"b", b"a"), "the key 'a' twice"),
    ],
)  # fmt: skip
def test_a_file_that_lies_is_refused(tmp_path, content, told):
    path = tmp_path / "a.gguf"
    path.write_bytes(content)
    with pytest.raises(UserError, match=told) as error:
        read_gguf(path)
    assert "\n" not in str(error.value) and str(error.value).startswith(str(path))


def test_any_damage_is_one_line_and_allocates_nothing_large(tmp_path):
    """Bytes changed and cut anywhere: a file is read or refused, and no tensor is larger than the
    file.
    """
    whole = make_gguf(
        VALUES, {"w": store_floats(np.ones((2, 32))), "v": ((2, 32), Q8_0, bytes(68))}
    )
    draw, path = random.Random(2), tmp_path / "a.gguf"
    for _ in range(1500):
        damaged = bytearray(whole[: draw.choice([len(whole), draw.randrange(len(whole))])])
        for _ in range(draw.choice([1, 1, 8])):
            if damaged:
                damaged[draw.randrange(len(damaged))] = draw.choice([0, 1, 127, 255])
        path.write_bytes(damaged)
        with suppress(UserError):
            found = read_gguf(path)
            assert sum(tensor.bytes for tensor in found.tensors.values()) <= len(damaged)
            assert all(
                math.prod(found.read_tensor(name).shape) <= len(damaged) for name in found.tensors
            )


def test_a_missing_file(tmp_path):
    with pytest.raises(UserError, match=r"none\.gguf cannot be read"):
        read_gguf(tmp_path / "none.gguf")


def test_the_library_of_the_format_reads_the_real_file_alike(gguf_file):
    """`pip install gguf` for this test: the reader of llama.cpp's own project."""
    gguf = pytest.importorskip("gguf")
    found, expected = read_gguf(gguf_file), gguf.GGUFReader(gguf_file)
    assert {tensor.name for tensor in expected.tensors} == found.tensors.keys()
    for tensor in expected.tensors:
        theirs = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        np.testing.assert_array_equal(found.read_tensor(tensor.name), theirs, err_msg=tensor.name)
    for key, value in found.values.items():
        assert expected.fields[key].contents() == value, key
