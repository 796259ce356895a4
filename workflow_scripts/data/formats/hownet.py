"""HowNet's sememes (Dong and Dong 2003), the primitive meanings that compose words, in the files of CAT's authors.

Two pickles of plain containers: `HowNet.idx` has the sememe numbers of English words and phrases, over all their
senses; `sememe.idx` has the name of each number. About 950 of the 3,152 names join a role and a sememe (`timeeat`), an
artefact of how the definitions were parsed.
"""

from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import write_json
from workflow_scripts.data.formats.plain_pickle import read_plain

SOURCES = ("sememes/HowNet.idx", "sememes/sememe.idx")


def read_sememe_names(folder: Path) -> list[str]:
    """Read the sememe names, ordered by sememe number. Raises UserError if the file has another content."""
    file = folder / "sememe.idx"
    names = read_plain(file)
    if not isinstance(names, dict) or set(names) != set(range(len(names))) or not names:
        raise UserError(f"{file}: not a dict from the numbers 0, 1, ... to names of sememes; fetch it again")
    listed = [names[number] for number in range(len(names))]
    if wrong := next((name for name in listed if not isinstance(name, str)), None):
        raise UserError(f"{file}: {wrong!r} is no name of a sememe; fetch it again")
    return listed


def read_sememes(folder: Path) -> dict[str, list[int]]:
    """Read the sememes of each word or phrase (as spelt in the file): sorted numbers without repetition.

    The empty word is omitted. Raises UserError if the file has another content or a number has no name.
    """
    count = len(read_sememe_names(folder))
    file = folder / "HowNet.idx"
    words = read_plain(file)
    if not isinstance(words, dict):
        raise UserError(f"{file}: not a dict from words to sememes; fetch it again")
    for word, numbers in words.items():
        known = isinstance(numbers, list) and all(type(number) is int and 0 <= number < count for number in numbers)
        if not (isinstance(word, str) and known and numbers):
            raise UserError(f"{file}: {word!r} has not a list of sememes 0 to {count - 1}; fetch it again")
    return {word: sorted(set(numbers)) for word, numbers in words.items() if word}


def write_sememe_files(folder: Path, known: dict[str, list[int]], names: list[str]) -> None:
    """Write sememes.parquet (words alphabetically, with their sememe numbers) and sememe_names.json for training."""
    # Not imported at the top, because reading the catalogue imports this module and must be fast.
    import pyarrow as pa
    import pyarrow.parquet as pq

    words = sorted(known)
    lists = pa.array([known[word] for word in words], pa.list_(pa.int32()))
    pq.write_table(pa.table({"word": words, "sememes": lists}), folder / "sememes.parquet", compression="zstd")
    write_json(folder / "sememe_names.json", names)
