"""Reading pickles of plain containers and nothing else: a pickle is a program, and most of what it can do is refused.

Two defences, each enough for what is known: the opcodes are read, without being run, against a list of those that build
plain values (so no object is made, found or called, the cached extension registry of `copyreg` included, which an
Unpickler asks before its `find_class`); then an Unpickler that can find neither classes nor persistent objects runs it.
"""

import io
import pickle
import pickletools
from pathlib import Path
from typing import Any, NoReturn

from workflow_scripts.common.errors import UserError

LARGEST = 64 * 2**20  # bytes; the largest that is wanted has 3 MB
BUILDING = (
    "PROTO FRAME STOP MARK POP POP_MARK MEMOIZE PUT BINPUT LONG_BINPUT GET BINGET LONG_BINGET NONE NEWTRUE NEWFALSE "
    "INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT UNICODE SHORT_BINUNICODE BINUNICODE BINUNICODE8 "
    "SHORT_BINBYTES BINBYTES BINBYTES8 EMPTY_LIST LIST APPEND APPENDS EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 "
    "EMPTY_DICT DICT SETITEM SETITEMS EMPTY_SET ADDITEMS"
)
PLAIN = frozenset(BUILDING.split())
MEMO = frozenset(["PUT", "BINPUT", "LONG_BINPUT"])


class PlainUnpickler(pickle.Unpickler):
    """Builds dict, list, tuple, set, str, bytes, int, float, bool and None; whatever else is asked for is refused."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")

    def persistent_load(self, pid: Any) -> NoReturn:
        raise pickle.UnpicklingError("it asks for an object outside it")


def read_plain(path: Path) -> Any:
    """The content of a pickle. Raises UserError, and runs nothing of it, when it holds more than plain containers;
    raises UserError too when it is broken or over LARGEST bytes.
    """
    content = path.read_bytes()
    if len(content) > LARGEST:
        raise UserError(f"{path} has {len(content)} bytes, more than {LARGEST}; fetch it again")
    try:
        for opcode, argument, position in pickletools.genops(content):
            if opcode.name not in PLAIN:
                raise pickle.UnpicklingError(f"opcode {opcode.name} at byte {position}")
            # The memo is an array up to the largest number: one number could ask for all memory.
            if opcode.name in MEMO and not 0 <= argument < len(content):
                raise pickle.UnpicklingError(f"{opcode.name} {argument} at byte {position}")
        return PlainUnpickler(io.BytesIO(content)).load()
    except (
        pickle.UnpicklingError,
        ArithmeticError,
        AttributeError,
        EOFError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise UserError(f"{path} is not a pickle of plain containers ({reason}); fetch it again") from error
