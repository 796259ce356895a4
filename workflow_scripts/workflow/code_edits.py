"""Edits of the code and of YAML files while a call runs.

Snakemake records the fingerprint that a job had when the call began. The record that a job writes
has the one of the instant when the job began. Where they differ, the result is of an edit during
the call, which may have been undone since.
"""

from collections.abc import Iterable
from pathlib import Path

from workflow_scripts.common.files import hash_file
from workflow_scripts.common.result_folders import ClaimFiles, DisplayFiles, JobFolder
from workflow_scripts.workflow.changes import join_first
from workflow_scripts.workflow.result_patterns import FOLDERS, SCALE
from workflow_scripts.workflow.snakemake_records import SnakemakeRecords

PACKAGE = Path(__file__).parents[1]


def hash_package() -> dict[str, str]:
    """Return file -> sha256 of each module of the package."""
    files = sorted(PACKAGE.rglob("*.py"))
    return {file.relative_to(PACKAGE.parent).as_posix(): hash_file(file) for file in files}


def list_edited_modules(before: dict[str, str]) -> list[str]:
    """List the modules that are other than `before`, which `hash_package` returned."""
    now = hash_package()
    return [name for name in {**before, **now} if before.get(name) != now.get(name)]


def map_edited_outputs(since: float) -> dict[str, str]:
    """Map the outputs whose own records have other fingerprints than Snakemake has recorded.

    Each is mapped to the name of the result that it is of. since: when the call began, in seconds
    since 1970. Earlier outputs are left out.
    """
    names = {}
    for result in SnakemakeRecords().list_recent_outputs(since):
        (output,) = result.outputs
        record = find_own_record(result.stage, Path(output))
        if record and not result.is_as_recorded_by(record):
            is_of_folder = record == JobFolder(record.parent).record
            names[output] = str(record.parent if is_of_folder else record.with_suffix(""))
    return names


def find_own_record(stage: str, output: Path) -> Path | None:
    """Return the record that the job of an output wrote.

    None if the output is not there, or has none, such as a download.
    """
    record = None
    if stage in FOLDERS:
        folders = [JobFolder(folder) for folder in output.parents]
        record = next((folder.record for folder in folders if folder.record.is_file()), None)
    elif stage in ("table", "figure"):
        record = DisplayFiles(output.parent, output.stem).record
    elif stage in ("claim", "claims"):
        record = ClaimFiles(output.with_name(SCALE.claims.table.name)).record
    if record is None or not output.exists() or not record.is_file():
        return None
    return record


def mark_as_stale(outputs: Iterable[str]) -> None:
    """Let the next call make outputs again, unless their own records fit what it would make."""
    SnakemakeRecords().mark_incomplete(outputs)


def describe_edits(edited: list[str], recorded: int, stale: list[str]) -> str:
    """Name the edited modules, and say what follows; empty without an edit.

    recorded: how many results are known to be of the edits alone. stale: the names of results that
    are stale although no module is other than at the beginning.
    """
    results = "1 result is" if recorded == 1 else f"{recorded} results are"
    if edited:
        line = f"{join_first(edited, ', ')} changed during this call"
        if recorded:
            line += f"; {results} of the edited code alone, and recorded so; others"
        else:
            line += ", so its results"
        return f"{line} can be of different code: ./reproduce -n lists what is stale"
    sentences = []
    if recorded:
        sentences.append(f"{results} of files that were edited during this call, and recorded so")
    if stale:
        verb = "is" if len(stale) == 1 else "are"
        sentences.append(
            f"{join_first(stale, ', ')} {verb} of files that were edited during this call, and "
            "stale: the next ./reproduce repeats the work"
        )
    return "; ".join(sentences)
