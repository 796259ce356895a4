"""Find files of results and downloads that are missing, or differ from their recorded sha256."""

from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_mapping
from workflow_scripts.provenance.record import OWN_DIGEST
from workflow_scripts.provenance.recorded_digests import find_damaged_parts, list_listed_files
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
        is_download = rule in DOWNLOADING_RULES
        damaged += find_damaged_parts(locate_manifest(rule, wildcards), is_download=is_download)
    if rule not in DOWNLOADING_RULES:
        damaged += find_damaged_parts(locate_record(rule, wildcards))
    return damaged


def locate_manifest(rule: str, wildcards: dict[str, str]) -> Path:
    """Return the manifest of a result, of a rule in MANIFESTS."""
    return Path(str(MANIFESTS[rule]).format(**wildcards))


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
        files += _list_named_files(locate_manifest(rule, wildcards))
    files.append(locate_record(rule, wildcards))
    return [file for file in dict.fromkeys(files) if not file.exists()]


def _list_named_files(manifest: Path) -> list[Path]:
    """Return the files that a manifest names; none if it cannot be read."""
    try:
        return [file for file, _ in list_listed_files(manifest, read_mapping(manifest))]
    except UserError:  # find_damaged_files says it
        return []
