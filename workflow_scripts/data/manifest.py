"""dataset.json of a data folder, whatever the kind of its data."""

from pathlib import Path
from typing import Any

from workflow_scripts import provenance
from workflow_scripts.facts import of_data
from workflow_scripts.files import sha256_files, write_json


def write_manifest(folder: Path, content: dict[str, Any], spec: dict[str, Any], source_digests: dict[str, str]) -> None:
    """Write dataset.json beside the other files of the folder, which are complete: `content` and how they were made."""
    made = provenance.record(of_data(spec), source_digests, spec["options"].get("seed"))
    files = {"sources": source_digests, "files": sha256_files(folder)}
    write_json(folder / "dataset.json", {**content, **made, **files})
