"""Check the output folders of a command before its work starts."""

import os
from fnmatch import fnmatch
from pathlib import Path

from workflow_scripts.common.errors import UserError


def make_writable(folder: Path) -> None:
    """Make the folder. Raises UserError if the folder cannot be made or written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder} cannot be made ({error.strerror}); choose another place") from error
    if not os.access(folder, os.W_OK):
        raise UserError(f"{folder} cannot be written; change its permissions or choose another place")


def check_replaceable(folder: Path, names: set[str]) -> None:
    """Make the folder's parent. Raises UserError unless the folder is missing or holds nothing but `names`.

    The command replaces the whole folder, and a wrong `--out` must not delete other files.
    """
    make_writable(folder.parent)
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file; choose another --out")
    foreign = sorted({path.name for path in folder.iterdir()} - names) if folder.exists() else []
    if foreign:
        raise UserError(f"{folder} holds {foreign[0]}, which is not of this command; choose another --out")


def check_made_here(folder: Path, always: str, others: tuple[str, ...]) -> None:
    """Raise UserError unless the folder is missing, empty, or was made by this command.

    The folder will be replaced. It must have a file that matches the pattern `always`, and no file that matches neither
    `always` nor `others`.
    """
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file; choose another --out")
    names = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    patterns = (always, *others) if any(fnmatch(name, always) for name in names) else ()
    foreign = [name for name in names if not any(fnmatch(name, pattern) for pattern in patterns)]
    if foreign:
        raise UserError(f"{folder} holds {foreign[0]}, which is not of this command; choose another --out")
