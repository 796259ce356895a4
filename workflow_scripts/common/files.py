"""Check output folders, write files atomically, read JSON and CSV, and compute digests."""

import csv
import hashlib
import io
import json
import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatch, fnmatchcase
from pathlib import Path
from typing import Any, TypeVar

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.scratch_folders import (
    REPLACED,
    is_scratch_folder,
    open_scratch_folder,
    remove_leftovers,
)

HOW_TO_FIX = (
    "if ./reproduce made it, delete it and run ./reproduce again; if it is yours, correct it"
)
# What operating systems, network file systems and editors put into folders by themselves.
SYSTEM_FILES = (
    *(
        ".DS_Store",
        "._*",
        ".AppleDouble",
        ".localized",
        ".Spotlight-V100",
        ".Trashes",
        ".fseventsd",
    ),
    *("__MACOSX", "Icon\r", "Thumbs.db", "ehthumbs.db", "desktop.ini", "$RECYCLE.BIN"),
    *(".directory", ".Trash-*", ".fuse_hidden*", ".nfs*", ".snapshot", "lost+found"),
    *(".#*", "#*#", ".*.sw?", "*~"),
)
MEMORY = Path("/dev/shm")  # a file system in memory, on Linux
SCRATCH_BYTES = 200_000_000  # that must be free there: scores of an export take a twentieth of it
MAX_DEPTH = 50  # levels of nested lists and mappings in a JSON or YAML file; ours have 10
DECIMAL = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")

Number = TypeVar("Number", int, float)


class MissingFileError(UserError):
    """The error for a missing file. Only files under results/ are made by ./reproduce."""

    def __init__(self, path: str | Path):
        advice = "pass an existing file"
        if Path(path).parts[:1] == ("results",):
            advice = f"make it with ./reproduce {path}"
        super().__init__(f"{path} does not exist; {advice}")


@contextmanager
def write_atomically(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path.

    The file or folder that the block makes there replaces `path` if the block succeeds. Before the
    block, what killed processes have left of the same path is deleted.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    with open_scratch_folder(target) as scratch:
        temporary = scratch / target.name
        yield temporary
        if temporary.is_dir() and target.exists():
            # A folder cannot be renamed over a folder that is not empty, so the old one is moved
            # away first.
            os.replace(target, scratch / REPLACED)
        os.replace(temporary, target)


def make_scratch_folder() -> tempfile.TemporaryDirectory[str]:
    """Make a temporary folder for many small files: in memory, where the system has a place for it.

    On some disks it takes milliseconds to delete a folder, and seconds for a thousand of them.
    """
    has_room = os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > SCRATCH_BYTES
    return tempfile.TemporaryDirectory(dir=MEMORY if has_room else None)


def format_json(content: Any) -> str:
    """Format content as JSON with sorted keys, for people."""
    return json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def write_text_file(path: str | Path, text: str) -> None:
    """Write a text atomically."""
    with write_atomically(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: str | Path, content: Any) -> None:
    """Write `content` as JSON with sorted keys, atomically."""
    write_text_file(path, format_json(content))


def read_json(path: str | Path) -> Any:
    """Read JSON.

    Raises UserError with the path if the file is missing, not UTF-8, not valid JSON or too deep.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8-sig"))
        _check_depth(content)
        return content
    except FileNotFoundError as error:
        raise MissingFileError(path) from error
    except RecursionError as error:
        raise UserError(
            f"{path}: nested more than {MAX_DEPTH} levels deep; {HOW_TO_FIX}"
        ) from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text; {HOW_TO_FIX}") from error
    except ValueError as error:  # an integer of thousands of digits has no line
        line = f":{error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise UserError(
            f"{path}{line}: not valid JSON ({getattr(error, 'msg', error)}); {HOW_TO_FIX}"
        ) from error


def _check_depth(content: Any) -> None:
    """Raise RecursionError for more than MAX_DEPTH levels of lists and mappings."""
    depth = 0
    containers = _select_containers([content])  # of one level
    while containers:
        depth += 1
        if depth > MAX_DEPTH:
            raise RecursionError
        inner_values: list[Any] = []
        for container in containers:
            inner_values += container.values() if isinstance(container, dict) else container
        containers = _select_containers(inner_values)


def _select_containers(values: list[Any]) -> list[dict | list]:
    """Return the lists and mappings among the values."""
    return [value for value in values if isinstance(value, dict | list)]


def read_mapping(path: str | Path, *keys: str) -> dict[str, Any]:
    """Read JSON like `read_json`. Raises UserError unless it is a mapping with these keys."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise UserError(f"{path}: must contain a mapping; {HOW_TO_FIX}")
    for key in keys:
        if key not in content:
            raise UserError(f"{path}: key '{key}' is missing; {HOW_TO_FIX}")
    return content


def read_csv(path: str | Path, columns: Collection[str] = ()) -> list[dict[str, str]]:
    """Read the rows of a CSV file as text; no rows if the file does not exist.

    Raises UserError if it is not valid, if it lacks one of `columns`, or if a row has other cells
    than the header.
    """
    if not Path(path).exists():
        return []
    try:
        # Spreadsheets put a byte order mark before the first column.
        with open(path, newline="", encoding="utf-8-sig") as stream:
            reader = csv.DictReader(stream, strict=True)
            header = reader.fieldnames or ()
            rows = []
            last_lines = []  # of each row, since a cell may have line breaks
            for row in reader:
                rows.append(row)
                last_lines.append(reader.line_num)
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: not valid CSV in UTF-8 ({error}); {HOW_TO_FIX}") from error
    for name in columns:
        if name not in header:
            raise UserError(f"{path}: has no column {name}; {HOW_TO_FIX}")
    for line, row in zip(last_lines, rows, strict=True):
        if None in row or None in row.values():
            raise UserError(f"{path}:{line}: more or fewer cells than the header has; {HOW_TO_FIX}")
    return rows


def write_csv(
    path: str | Path, columns: Collection[str], rows: Iterable[Mapping[str, Any]]
) -> None:
    """Write rows as CSV, atomically. A column that a row lacks is empty."""
    with write_atomically(path) as temporary:
        temporary.write_text(format_csv(columns, rows), encoding="utf-8", newline="")


def format_csv(columns: Collection[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Format rows as CSV. A column that a row lacks is empty."""
    stream = io.StringIO()
    writer: csv.DictWriter[str] = csv.DictWriter(stream, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def parse_decimal(text: str, kind: type[Number]) -> Number | None:
    """Return the number in a cell of a CSV file, of the type `kind`; None for an empty cell.

    Raises ValueError for anything but a decimal number of this type. A number that is too large for
    a float is infinite.
    """
    if not text:
        return None
    if not DECIMAL.fullmatch(text):  # Python also reads 28_42, and digits of other scripts
        raise ValueError(f"{text!r} is not a decimal number")
    return kind(text)


def format_canonical_json(content: Any) -> str:
    """Format content as JSON with sorted keys and no spaces.

    Equal content gives equal text.
    """
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(content: Any) -> str:
    """Return the first 16 hex digits of the sha256 of the canonical JSON."""
    return hashlib.sha256(format_canonical_json(content).encode()).hexdigest()[:16]


def hash_file(path: str | Path) -> str:
    """Return the sha256 of a file in hex digits."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def is_system_file(path: str | Path) -> bool:
    """Return whether a file, or a folder that it is in, is one of SYSTEM_FILES.

    Results have no such files, so they are passed over wherever a folder is listed.
    """
    parts = Path(path).parts
    return any(fnmatchcase(part, pattern) for part in parts for pattern in SYSTEM_FILES)


def list_files(folder: str | Path, pattern: str = "*") -> list[Path]:
    """List the files and folders in a folder that match a pattern, sorted.

    `**/*` lists all levels. System files are left out, and what is being written, or was when its
    process was killed.
    """
    paths = Path(folder).glob(pattern)
    return sorted(path for path in paths if not _is_passed_over(path.relative_to(folder)))


def _is_passed_over(path: Path) -> bool:
    """Whether a path is no file of a result, nor of the user."""
    return is_system_file(path) or any(map(is_scratch_folder, path.parts))


def hash_files(folder: str | Path) -> dict[str, str]:
    """Return the sha256 of every file under a folder, by its relative path.

    Those of the operating system are left out.
    """
    paths = [path for path in list_files(folder, "**/*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): hash_file(path) for path in paths}


def store_on_disk(path: Path) -> None:
    """Wait until a file is on disk.

    After a power cut a rename may have survived, but not the content of the file.
    """
    with open(path, "rb+") as stream:
        os.fsync(stream.fileno())


def make_writable(folder: Path) -> None:
    """Make the folder. Raises UserError if the folder cannot be made or written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"{folder} cannot be made ({error.strerror}); choose another folder"
        ) from error
    if not os.access(folder, os.W_OK):
        raise UserError(
            f"{folder} is not writable; change its permissions or choose another folder"
        )


def check_replaceable(folder: Path, patterns: Collection[str], required: str = "*") -> None:
    """Make the parent of an output folder. Raises UserError if the folder contains files of others.

    The command replaces the whole folder, and a wrong `--out` must not delete other files. Each
    file must match one of `patterns`, and one of them the pattern `required`. The folder may also
    be missing or empty. What killed processes have left in it or of it is no such file, and is
    deleted.
    """
    make_writable(folder.parent)
    remove_leftovers(folder.parent, folder.name)
    remove_leftovers(folder)
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file; choose another --out")
    if not folder.exists():
        return
    names = [path.name for path in list_files(folder)]
    is_ours = any(fnmatch(name, required) for name in names)
    for name in names:
        if not is_ours or not any(fnmatch(name, pattern) for pattern in patterns):
            raise UserError(
                f"{folder} contains {name}, which this command does not write; choose another --out"
            )
