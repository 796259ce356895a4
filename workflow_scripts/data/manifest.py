"""dataset.json of a data folder, whatever the kind of its data."""

from pathlib import Path
from typing import Any

from workflow_scripts import provenance
from workflow_scripts.errors import UserError
from workflow_scripts.facts import of_data
from workflow_scripts.files import sha256_files, write_json
from workflow_scripts.protocols import worst_protocol


def protocol_of(spec: dict[str, Any], made: str) -> str:
    """The worse protocol of spec and data. Raises UserError when the spec does not say that the data are made up."""
    if made == "stand_in" and spec["protocol"] != "stand_in":
        raise UserError(
            f"task {spec['task']}: its data are made up, but its protocol is {spec['protocol']}; make it stand_in"
        )
    return worst_protocol(spec["protocol"], made)


def write_manifest(folder: Path, content: dict[str, Any], spec: dict[str, Any], source_digests: dict[str, str]) -> None:
    """Write dataset.json beside the other files of the folder, which are complete: `content` and how they were made."""
    made = provenance.record(of_data(spec), source_digests, spec["options"].get("seed"))
    files = {"sources": source_digests, "files": sha256_files(folder)}
    write_json(folder / "dataset.json", {**content, **made, **files})
