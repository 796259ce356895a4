"""Check the output folders of a command before its work starts."""

import os
from collections.abc import Collection
from fnmatch import fnmatch
from pathlib import Path

from workflow_scripts.common.errors import UserError


def make_writable(folder: Path) -> None:
    """Make the folder. Raises UserError if the folder cannot be made or written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder} cannot be made ({error.strerror}); choose another folder") from error
    if not os.access(folder, os.W_OK):
        raise UserError(f"{folder} is not writable; change its permissions or choose another folder")


def check_replaceable(folder: Path, patterns: Collection[str], required: str = "*") -> None:
    """Make the parent of an output folder. Raises UserError if the folder contains files of others.

    The command replaces the whole folder, and a wrong `--out` must not delete other files. Each file must match one of
    `patterns`, and one of them the pattern `required`. The folder may also be missing or empty.
    """
    make_writable(folder.parent)
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file; choose another --out")
    names = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    is_ours = any(fnmatch(name, required) for name in names)
    for name in names:
        if not is_ours or not any(fnmatch(name, pattern) for pattern in patterns):
            raise UserError(f"{folder} contains {name}, which this command does not write; choose another --out")
