"""Checks on the folders that a command is told to write, made before the work rather than after it."""

import os
from fnmatch import fnmatch
from pathlib import Path

from workflow_scripts.common.errors import UserError


def make_writable(folder: Path) -> None:
    """Make the folder. Raises UserError when that, or writing there, is impossible."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder} cannot be made ({error.strerror}); choose another place") from error
    if not os.access(folder, os.W_OK):
        raise UserError(f"{folder} cannot be written; change its permissions or choose another place")


def check_replaceable(folder: Path, names: set[str]) -> None:
    """Make the folder's parent. Raises UserError unless the folder is missing or holds nothing but `names`.

    It is to be replaced as a whole: a wrong `--out` must not cost anyone their files.
    """
    make_writable(folder.parent)
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file; choose another --out")
    foreign = sorted({path.name for path in folder.iterdir()} - names) if folder.exists() else []
    if foreign:
        raise UserError(f"{folder} holds {foreign[0]}, which is not of this command; choose another --out")


def check_made_here(folder: Path, always: str, others: tuple[str, ...]) -> None:
    """Raises UserError unless the folder, to be replaced as a whole, is missing, empty or of this command: one that has
    a name like the pattern `always`, and none that is like neither it nor `others`.
    """
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file; choose another --out")
    names = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    patterns = (always, *others) if any(fnmatch(name, always) for name in names) else ()
    foreign = [name for name in names if not any(fnmatch(name, pattern) for pattern in patterns)]
    if foreign:
        raise UserError(f"{folder} holds {foreign[0]}, which is not of this command; choose another --out")
