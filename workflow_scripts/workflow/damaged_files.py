"""Find files of results and downloads that are missing, or that differ from their recorded sha256.

A manifest has the sha256 of the other files of its folder. A record has that of the manifest; of a
table, a figure or claims, that of each file. It also has a digest of its own content.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import HOW_TO_FIX, hash_file, read_mapping
from workflow_scripts.provenance.record import OUTPUT_DIGESTS, OWN_DIGEST, is_record_unchanged
from workflow_scripts.workflow.result_patterns import (
    ANALYSIS,
    CANDIDATES,
    DATA,
    EVALUATION,
    HUB_MODEL,
    INTERVENTIONS,
    KEPT_FILES,
    SEARCH,
    SOURCE,
    TRAINING,
    locate_record,
)

# Rule -> the manifest of its result, with the sha256 of its files. Tables, figures and claims have
# none.
MANIFESTS: dict[str, Path] = {
    "fetch": SOURCE.manifest,
    "fetch_model": HUB_MODEL.manifest,
    "prepare": DATA.manifest,
    "candidates": CANDIDATES.manifest,
    "search": SEARCH.chosen,
    "train": TRAINING.manifest,
    "evaluate": EVALUATION.manifest,
    "intervene": INTERVENTIONS.manifest,
    "analyse": ANALYSIS.manifest,
}
DOWNLOADING_RULES = ("fetch", "fetch_model")  # their record is the manifest


def find_damaged_files(rule: str, wildcards: dict[str, str]) -> list[str]:
    """Return a sentence for each file of a result that differs from its sha256.

    Files that are not there are passed over: `find_missing_files` names those that must be. A
    manifest or a record that cannot be read is damaged, too.
    """
    damaged = []
    if rule in MANIFESTS:
        damaged += _compare_files(Path(str(MANIFESTS[rule]).format(**wildcards)))
    if rule not in DOWNLOADING_RULES:
        damaged += _compare_with_record(locate_record(rule, wildcards))
    return damaged


def has_output_digests(rule: str, wildcards: dict[str, str]) -> bool:
    """Whether the record of a result has sha256; those of earlier versions have none.

    A record that cannot be read may have some.
    """
    record = locate_record(rule, wildcards)
    if rule in DOWNLOADING_RULES or not record.exists():
        return True
    try:
        return OWN_DIGEST in read_mapping(record)
    except UserError:
        return True


def find_missing_files(rule: str, wildcards: dict[str, str]) -> list[Path]:
    """Return the files that a result should have and has not, without those that may be deleted."""
    if rule in DOWNLOADING_RULES:
        return []
    files = [Path(str(pattern).format(**wildcards)) for pattern in KEPT_FILES[rule]]
    if rule == "analyse":  # its further tables
        manifest = Path(str(MANIFESTS[rule]).format(**wildcards))
        files += [file for file, _ in _read_digests(manifest)]
    files.append(locate_record(rule, wildcards))
    return [file for file in dict.fromkeys(files) if not file.exists()]


def _read_digests(manifest: Path) -> list[tuple[Path, str]]:
    """Return the files that a manifest names, each with its sha256; none if it cannot be read."""
    try:
        return list(_list_files(manifest, read_mapping(manifest)))
    except UserError:  # find_damaged_files says it
        return []


def _compare_files(manifest: Path) -> Iterator[str]:
    """Yield a sentence for each file that differs from its sha256 in a manifest."""
    if not manifest.exists():
        return
    try:
        files = list(_list_files(manifest, read_mapping(manifest)))
    except UserError as error:
        yield str(error)
        return
    for file, sha256 in files:
        if file.is_file() and hash_file(file) != sha256:
            yield f"{file} differs from the sha256 in {manifest.name}"


def _compare_with_record(record: Path) -> Iterator[str]:
    """Yield a sentence for each file that differs from its sha256 in a record, and for the record.

    Records of earlier versions have no sha256.
    """
    if not record.exists():
        return
    try:
        content = read_mapping(record)
        if OWN_DIGEST not in content and OUTPUT_DIGESTS not in content:
            return
        is_unchanged = is_record_unchanged(record)
    except UserError as error:
        yield str(error)
        return
    if not is_unchanged:
        yield f"{record} differs from its own {OWN_DIGEST}"
        return
    for name, sha256 in content.get(OUTPUT_DIGESTS, {}).items():
        file = record.with_name(name)
        if file.is_file() and hash_file(file) != sha256:
            yield f"{file} differs from the sha256 in {record.name}"


def _list_files(manifest: Path, content: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield the files that a manifest names, each with its sha256."""
    if "files" not in content:  # of a download, whose manifest is <file>.json
        yield manifest.with_suffix(""), content.get("sha256", "")
        return
    if not isinstance(content["files"], dict):
        raise UserError(f"{manifest}: 'files' must be a mapping; {HOW_TO_FIX}")
    for name, entry in content["files"].items():
        sha256 = entry.get("sha256", "") if isinstance(entry, dict) else entry
        yield manifest.parent / name, sha256
