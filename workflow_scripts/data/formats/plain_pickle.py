"""Safe reading of pickles of plain containers and values: a pickle is a program, and most of its abilities are refused.

Two defences, each sufficient against known attacks. First, every opcode, without running it, must be one that builds
plain values. So no object is created, found or called, not even through `copyreg`'s extension cache, which an Unpickler
reads before it calls `find_class`. Then an Unpickler that refuses classes runs the pickle; without a method for
persistent objects it refuses these, too.
"""

import io
import pickle
import pickletools
from pathlib import Path
from typing import Any, NoReturn

from workflow_scripts.common.errors import UserError

LARGEST = 64 * 2**20  # bytes; the largest file needed has 3 MB
BUILDING = (
    "PROTO FRAME STOP MARK POP POP_MARK MEMOIZE PUT BINPUT LONG_BINPUT GET BINGET LONG_BINGET NONE NEWTRUE NEWFALSE "
    "INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT UNICODE SHORT_BINUNICODE BINUNICODE BINUNICODE8 "
    "SHORT_BINBYTES BINBYTES BINBYTES8 EMPTY_LIST LIST APPEND APPENDS EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 "
    "EMPTY_DICT DICT SETITEM SETITEMS EMPTY_SET ADDITEMS"
)
PLAIN = frozenset(BUILDING.split())
MEMO = frozenset(["PUT", "BINPUT", "LONG_BINPUT"])


class PlainUnpickler(pickle.Unpickler):
    """Unpickler of dict, list, tuple, set, str, bytes, int, float, bool and None that refuses anything else."""

    def find_class(self, module: str, name: str) -> NoReturn:
        """Refuse every class and function."""
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")


def read_plain(path: Path) -> Any:
    """Read a pickle of plain containers.

    Raises UserError if it contains anything else (without running it), is broken, or has more than LARGEST bytes.
    """
    content = path.read_bytes()
    if len(content) > LARGEST:
        raise UserError(f"{path} has {len(content)} bytes, more than {LARGEST}; fetch it again")
    try:
        for opcode, argument, position in pickletools.genops(content):
            if opcode.name not in PLAIN:
                raise pickle.UnpicklingError(f"opcode {opcode.name} at byte {position}")
            # The memo is an array as long as the largest index, so a single huge index could use up all memory.
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
