"""Edits of the code while a call runs: its jobs are then of different code."""

from pathlib import Path

from workflow_scripts.common.files import hash_file
from workflow_scripts.workflow.changes import join_first

PACKAGE = Path(__file__).parents[1]


def hash_package() -> dict[str, str]:
    """Return file -> sha256 of each module of the package."""
    files = sorted(PACKAGE.rglob("*.py"))
    return {file.relative_to(PACKAGE.parent).as_posix(): hash_file(file) for file in files}


def describe_code_edits(before: dict[str, str]) -> str:
    """Name the modules that are other than `before`, and say what follows; empty if none is.

    before: what `hash_package` returned when the call began.
    """
    now = hash_package()
    edited = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    if not edited:
        return ""
    return (
        f"{join_first(edited, ', ')} changed during this call, so its results can be of different "
        "code: ./reproduce -n lists what is stale"
    )
