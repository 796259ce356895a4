"""HowNet's sememes (Dong and Dong 2003), the primitive meanings that compose words.

They are in two files of CAT's authors, pickles of plain containers: `HowNet.idx` has the sememe
numbers of English words and phrases, over all their senses; `sememe.idx` has the name of each
number. About 950 of the 3,152 names join a role and a sememe (`timeeat`), an artefact of how the
definitions were parsed.

A pickle is a program, so two defences refuse most of its abilities, each sufficient against known
attacks. First, every opcode, without running it, must be one that builds plain values: nothing is
created, found or called, not even through `copyreg`'s extension cache. Then an Unpickler that
refuses classes and persistent objects runs the pickle.
"""

import io
import pickle
import pickletools
from pathlib import Path
from typing import Any, NoReturn

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import write_json
from workflow_scripts.common.result_folders import DataFolder
from workflow_scripts.data.prepared import write_split

SOURCES = ("sememes/HowNet.idx", "sememes/sememe.idx")
LARGEST = 64 * 2**20  # bytes; the largest file needed has 3 MB
BUILDING = (
    "PROTO FRAME STOP MARK POP POP_MARK MEMOIZE PUT BINPUT LONG_BINPUT GET BINGET LONG_BINGET "
    "NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT "
    "UNICODE SHORT_BINUNICODE BINUNICODE BINUNICODE8 SHORT_BINBYTES BINBYTES BINBYTES8 "
    "EMPTY_LIST LIST APPEND APPENDS EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 "
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
    """Unpickler of plain containers that refuses anything else.

    Plain are dict, list, tuple, set, str, bytes, int, float, bool and None.
    """

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
            is_index = isinstance(argument, int) and 0 <= argument < len(content)
            if opcode.name in MEMO and not is_index:
                raise pickle.UnpicklingError(f"{opcode.name} {argument} at byte {position}")
        return PlainUnpickler(io.BytesIO(content)).load()
    except BROKEN as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise UserError(
            f"{path} is not a pickle of plain containers ({reason}); fetch it again"
        ) from error


def read_sememes(folder: Path) -> tuple[dict[str, list[int]], list[str]]:
    """Read the sememes of each word or phrase, and the name of each sememe, by its number.

    The sememes are sorted distinct numbers. The empty word is left out. Raises UserError if a file
    has another content.
    """
    words_file = folder / "HowNet.idx"
    names_file = folder / "sememe.idx"
    names_by_number = read_plain(names_file)
    words = read_plain(words_file)
    names = list_sememe_names(names_by_number, names_file)
    if not isinstance(words, dict):
        raise UserError(f"{words_file}: not a dict from words to sememes; fetch it again")
    sememes = {}
    for word, numbers in words.items():
        if not isinstance(word, str) or not is_list_of_numbers(numbers, len(names)):
            raise UserError(
                f"{words_file}: {word!r} has not a list of sememes 0 to {len(names) - 1}; "
                "fetch it again"
            )
        if word:
            sememes[word] = sorted(set(numbers))
    return sememes, names


def list_sememe_names(content: Any, file: Path) -> list[str]:
    """Return the names in the content of sememe.idx. Raises UserError if they are not numbered."""
    is_numbered = isinstance(content, dict) and set(content) == set(range(len(content)))
    if not is_numbered or not content:
        raise UserError(
            f"{file}: not a dict from the numbers 0, 1, ... to names of sememes; fetch it again"
        )
    names = [content[number] for number in range(len(content))]
    for name in names:
        if not isinstance(name, str):
            raise UserError(f"{file}: {name!r} is no name of a sememe; fetch it again")
    return names


def is_list_of_numbers(value: Any, limit: int) -> bool:
    """Return whether a value is a list of one or more integers from 0 to below `limit`."""
    if not isinstance(value, list) or not value:
        return False
    return all(type(number) is int and 0 <= number < limit for number in value)


def write_sememe_files(folder: Path, sememes: dict[str, list[int]], names: list[str]) -> None:
    """Write sememes.parquet and sememe_names.json for training.

    The first has words alphabetically, with their sememe numbers.
    """
    words = sorted(sememes)
    write_split(folder, "sememes", {"word": words, "sememes": [sememes[word] for word in words]})
    write_json(DataFolder(folder).sememe_names, names)
