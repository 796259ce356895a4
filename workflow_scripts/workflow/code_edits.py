"""Edits of the code while a call runs.

Snakemake records the fingerprint that a job had when the call began. A job that begins after an
edit is of the edited code, and its own record says so.
"""

from datetime import datetime
from pathlib import Path

from workflow_scripts.common.files import hash_file, read_mapping
from workflow_scripts.common.result_folders import JobFolder
from workflow_scripts.workflow.changes import join_first
from workflow_scripts.workflow.snakemake_records import SnakemakeRecords

PACKAGE = Path(__file__).parents[1]
# By so much the clocks of a cluster may differ.
CLOCK_SECONDS = 5.0


def hash_package() -> dict[str, str]:
    """Return file -> sha256 of each module of the package."""
    files = sorted(PACKAGE.rglob("*.py"))
    return {file.relative_to(PACKAGE.parent).as_posix(): hash_file(file) for file in files}


def list_edited_modules(before: dict[str, str]) -> list[str]:
    """List the modules that are other than `before`, which `hash_package` returned."""
    now = hash_package()
    return [name for name in {**before, **now} if before.get(name) != now.get(name)]


def list_later_outputs(edited: list[str], since: float) -> list[str]:
    """List the outputs of jobs that began after the last edit.

    None if a module was deleted, because it is unknown when. since: when the call began, in seconds
    since 1970.
    """
    files = [PACKAGE.parent / name for name in edited]
    if not all(file.is_file() for file in files):
        return []
    last_edit = max(file.stat().st_mtime for file in files)
    outputs = []
    for output in SnakemakeRecords().list_recent_outputs(since):
        record = _find_record(Path(output))
        if record is None:
            continue
        began = datetime.fromisoformat(read_mapping(record, "started")["started"])
        if began.timestamp() > last_edit + CLOCK_SECONDS:
            outputs.append(output)
    return outputs


def _find_record(output: Path) -> Path | None:
    """Return the record that the job of an output wrote; None where it has another name."""
    for folder in output.parents:
        record = JobFolder(folder).record
        if record.is_file():
            return record
    return None


def describe_code_edits(edited: list[str], recorded: int) -> str:
    """Name the edited modules, and say what follows.

    recorded: how many results are known to be of the edited code alone.
    """
    line = f"{join_first(edited, ', ')} changed during this call"
    if recorded:
        results = "1 result is" if recorded == 1 else f"{recorded} results are"
        line += f"; {results} of the edited code alone, and recorded so; others"
    else:
        line += ", so its results"
    return f"{line} can be of different code: ./reproduce -n lists what is stale"
