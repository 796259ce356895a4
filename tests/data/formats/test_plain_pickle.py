"""Pickles of plain containers are read; of others nothing is run, whichever opcode they try."""

import copyreg
import io
import os
import pickle
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.formats.hownet import PlainUnpickler, read_plain

CODE = 0x7F  # of the extension registry


class Reduced:
    """Its pickle makes a folder when it is read."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return os.mkdir, (self.target,)


def text(target):
    return b"V" + target.encode() + b"\n"


# Name -> (pickle that makes the folder `target` when an ordinary reader reads it).
HOSTILE = {
    **{
        f"reduce, protocol {n}": lambda target, n=n: pickle.dumps(Reduced(target), n)
        for n in range(6)
    },
    "GLOBAL": lambda target: b"cos\nmkdir\n(" + text(target) + b"tR.",
    "STACK_GLOBAL": lambda target: b"\x80\x04\x8c\x02os\x8c\x05mkdir\x93(" + text(target) + b"tR.",
    "INST": lambda target: b"(" + text(target) + b"ios\nmkdir\n.",
    "OBJ": lambda target: b"(cos\nmkdir\n" + text(target) + b"o.",
    "hidden in a list": lambda target: pickle.dumps({"dog": [1, 2], "cat": [Reduced(target)]}),
    "thrown away": lambda target: b"cos\nmkdir\n(" + text(target) + b"tR0N.",
    **{
        f"EXT{size}": lambda target, size=size, form=form: (
            bytes([0x81 + size.bit_length()])
            + struct.pack(form, CODE)
            + b"("
            + text(target)
            + b"tR."
        )
        for size, form in ((1, "<B"), (2, "<H"), (4, "<i"))
    },
}


@pytest.fixture
def registered():
    """os.mkdir is in the extension registry and in its cache, where readers find it without
    find_class.
    """
    name = (os.mkdir.__module__, "mkdir")
    copyreg.add_extension(*name, CODE)
    yield
    copyreg.remove_extension(*name, CODE)
    copyreg._extension_cache.pop(CODE, None)


@pytest.mark.parametrize("kind", HOSTILE)
def test_nothing_of_a_hostile_pickle_is_run(kind, tmp_path, registered):
    target, file = tmp_path / "made", tmp_path / "hostile.idx"
    content = HOSTILE[kind](str(target))
    # It does harm to an ordinary reader: else this test would show nothing.
    pickle.loads(content)
    target.rmdir()
    file.write_bytes(content)
    with pytest.raises(
        UserError,
        match=r"hostile.idx is not a pickle of plain containers \(opcode [A-Z_0-9]+ at byte",
    ):
        read_plain(file)
    assert not target.exists()


@pytest.mark.parametrize("kind", [kind for kind in HOSTILE if "EXT" not in kind])
def test_the_reader_alone_refuses_them_too(kind, tmp_path):
    target = tmp_path / "made"
    with pytest.raises(pickle.UnpicklingError, match="it asks for"):
        PlainUnpickler(io.BytesIO(HOSTILE[kind](str(target)))).load()
    assert not target.exists()


def test_persistent_objects_are_refused(tmp_path):
    content = b"\x80\x04\x8c\x08s3://a/bQ."
    with pytest.raises(pickle.UnpicklingError, match="persistent"):
        PlainUnpickler(io.BytesIO(content)).load()
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(UserError, match="BINPERSID"):
        read_plain(tmp_path / "file")


LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
)
PLAIN = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text() | st.integers(), inner)
        | st.tuples(inner, inner)
        | st.sets(LEAVES)
    ),
)


@settings(max_examples=50)
@given(PLAIN, st.sampled_from([4, 5]))
def test_plain_containers_are_read_as_they_were(tmp_path_factory, content, protocol):
    file = tmp_path_factory.getbasetemp() / "plain.idx"
    file.write_bytes(pickle.dumps(content, protocol))
    assert read_plain(file) == content


@given(
    st.binary(max_size=80)
    | st.builds(lambda a, b: pickle.dumps({"x": [1, "y"]})[:a] + b, st.integers(0, 30), st.binary())
)
def test_broken_ones_are_one_line(tmp_path_factory, content):
    file = tmp_path_factory.getbasetemp() / "broken.idx"
    file.write_bytes(content)
    try:
        read_plain(file)
    except UserError as error:
        assert "\n" not in str(error)


def test_a_number_of_the_memo_cannot_ask_for_all_memory(tmp_path):
    file = tmp_path / "bomb.idx"
    file.write_bytes(b"]r" + struct.pack("<I", 2**32 - 1) + b".")
    with pytest.raises(UserError, match="LONG_BINPUT 4294967295"):
        read_plain(file)
