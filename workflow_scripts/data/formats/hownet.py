"""HowNet's sememes (Dong and Dong 2003), the primitive meanings that compose words, in the files of CAT's authors.

Two pickles of plain containers: `HowNet.idx` has the sememe numbers of English words and phrases,
over all their senses; `sememe.idx` has the name of each number. About 950 of the 3,152 names join a
role and a sememe (`timeeat`), an artefact of how the definitions were parsed.

A pickle is a program, so two defences refuse most of its abilities, each sufficient against known
attacks. First, every
opcode, without running it, must be one that builds plain values: nothing is created, found or
called, not even through `copyreg`'s extension cache. Then an Unpickler that refuses classes and
persistent objects runs the pickle.
"""

import io
import pickle
import pickletools
from pathlib import Path
from typing import Any, NoReturn

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import write_json
from workflow_scripts.data.prepared import write_split

SOURCES = ("sememes/HowNet.idx", "sememes/sememe.idx")
LARGEST = 64 * 2**20  # bytes; the largest file needed has 3 MB
BUILDING = (
    "PROTO FRAME STOP MARK POP POP_MARK MEMOIZE PUT BINPUT LONG_BINPUT GET BINGET LONG_BINGET NONE NEWTRUE NEWFALSE "
    "INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT UNICODE SHORT_BINUNICODE BINUNICODE BINUNICODE8 "
    "SHORT_BINBYTES BINBYTES BINBYTES8 EMPTY_LIST LIST APPEND APPENDS EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 "
    "EMPTY_DICT DICT SETITEM SETITEMS EMPTY_SET ADDITEMS"
)
PLAIN = frozenset(BUILDING.split())
MEMO = frozenset(["PUT", "BINPUT", "LONG_BINPUT"])
BROKEN = (
    pickle.UnpicklingError,
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    TypeError,
    ValueError,
)


class PlainUnpickler(pickle.Unpickler):
    """Unpickler of dict, list, tuple, set, str, bytes, int, float, bool and None that refuses anything else."""

    def find_class(self, module: str, name: str) -> NoReturn:
        """Refuse every class and function."""
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")


def read_plain(path: Path) -> Any:
    """Read a pickle of plain containers.

    Raises UserError for anything else (without running it) or a broken file.
    """
    content = path.read_bytes()
    if len(content) > LARGEST:
        raise UserError(f"{path} has {len(content)} bytes, more than {LARGEST}; fetch it again")
    try:
        for opcode, argument, position in pickletools.genops(content):
            if opcode.name not in PLAIN:
                raise pickle.UnpicklingError(f"opcode {opcode.name} at byte {position}")
            # The memo is an array as long as the largest index, so a single huge index could use up
            # all memory.
            if opcode.name in MEMO and not 0 <= argument < len(content):
                raise pickle.UnpicklingError(f"{opcode.name} {argument} at byte {position}")
        return PlainUnpickler(io.BytesIO(content)).load()
    except BROKEN as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise UserError(
            f"{path} is not a pickle of plain containers ({reason}); fetch it again"
        ) from error


def read_sememes(folder: Path) -> tuple[dict[str, list[int]], list[str]]:
    """Read the sememes of each word or phrase (sorted distinct numbers), and the name of each sememe, by its number.

    Raises UserError if a file has another content.
    """
    words_file, names_file = folder / "HowNet.idx", folder / "sememe.idx"
    names, words = read_plain(names_file), read_plain(words_file)
    if not isinstance(names, dict) or set(names) != set(range(len(names))) or not names:
        raise UserError(
            f"{names_file}: not a dict from the numbers 0, 1, ... to names of sememes; fetch it again"
        )
    listed = [names[number] for number in range(len(names))]
    if wrong := next((name for name in listed if not isinstance(name, str)), None):
        raise UserError(f"{names_file}: {wrong!r} is no name of a sememe; fetch it again")
    if not isinstance(words, dict):
        raise UserError(f"{words_file}: not a dict from words to sememes; fetch it again")
    for word, numbers in words.items():
        known = isinstance(numbers, list) and all(
            type(number) is int and 0 <= number < len(listed) for number in numbers
        )
        if not (isinstance(word, str) and known and numbers):
            raise UserError(
                f"{words_file}: {word!r} has not a list of sememes 0 to {len(listed) - 1}; fetch it again"
            )
    return {
        word: sorted(set(numbers)) for word, numbers in words.items() if word
    }, listed  # without the empty word


def write_sememe_files(folder: Path, sememes: dict[str, list[int]], names: list[str]) -> None:
    """Write sememes.parquet (words alphabetically, with their sememe numbers) and sememe_names.json for training."""
    words = sorted(sememes)
    write_split(folder, "sememes", {"word": words, "sememes": [sememes[word] for word in words]})
    write_json(folder / "sememe_names.json", names)
