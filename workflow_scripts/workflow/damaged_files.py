"""Compare the files of results and downloads with the sha256 in their manifests."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_file, read_mapping
from workflow_scripts.workflow.result_patterns import (
    ANALYSIS,
    CANDIDATES,
    DATA,
    EVALUATION,
    HUB_MODEL,
    INTERVENTIONS,
    SOURCE,
    TRAINING,
)

# Rule -> the manifest of its result, with the sha256 of its files. Searches, tables, figures and
# claims have none.
MANIFESTS: dict[str, Path] = {
    "fetch": SOURCE.manifest,
    "fetch_model": HUB_MODEL.manifest,
    "prepare": DATA.manifest,
    "candidates": CANDIDATES.manifest,
    "train": TRAINING.manifest,
    "evaluate": EVALUATION.manifest,
    "intervene": INTERVENTIONS.manifest,
    "analyse": ANALYSIS.manifest,
}


def find_damaged_files(rule: str, wildcards: dict[str, str]) -> list[str]:
    """Return a sentence for each file of a result that differs from its sha256.

    Files that are not there are passed over: weights, data and downloads may be deleted. A manifest
    that cannot be read is damaged, too.
    """
    if rule not in MANIFESTS:
        return []
    manifest = Path(str(MANIFESTS[rule]).format(**wildcards))
    if not manifest.exists():
        return []
    try:
        content = read_mapping(manifest)
    except UserError as error:
        return [str(error)]
    damaged = []
    for file, sha256 in _list_files(manifest, content):
        if file.is_file() and hash_file(file) != sha256:
            damaged.append(f"{file} differs from the sha256 in {manifest.name}")
    return damaged


def _list_files(manifest: Path, content: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield the files that a manifest names, each with its sha256."""
    if "files" not in content:  # of a download, whose manifest is <file>.json
        yield manifest.with_suffix(""), content.get("sha256", "")
        return
    for name, entry in content["files"].items():
        sha256 = entry["sha256"] if isinstance(entry, dict) else entry
        yield manifest.parent / name, sha256
