"""Compare files with the sha256 that a manifest or a record next to them has.

A manifest has the sha256 of the other files of its folder. A record has that of the manifest; of a
table, a figure or claims, that of each file. It also has a digest of its own content.
"""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import HOW_TO_FIX, hash_file, read_mapping
from workflow_scripts.provenance.record import OUTPUT_DIGESTS, OWN_DIGEST, is_record_unchanged


def require_undamaged(files: Collection[Path]) -> None:
    """Raise UserError if one of the files differs from its sha256 in one of their JSON files."""
    damaged: dict[str, None] = {}
    for file in files:
        if file.suffix == ".json":
            damaged |= dict.fromkeys(find_damaged_parts(file, files))
    if damaged:
        advice = (
            "nothing was written; delete them with the manifest, or with the folder if it is a "
            "record, and run ./reproduce again"
        )
        raise UserError("\n".join([*damaged, advice]))


def find_damaged_parts(
    file: Path, only: Collection[Path] | None = None, is_download: bool = False
) -> list[str]:
    """Return a sentence for each file that differs from its sha256 in a manifest or a record.

    A record is also compared with its own digest. Files that are not there, and those without a
    sha256, are passed over; with `only` all others, too, which need not be hashed then. A file that
    cannot be read is damaged. is_download: the manifest is <file>.json, of one file.
    """
    if not file.exists():
        return []
    try:
        content = read_mapping(file)
        listed = list_listed_files(file, content) if is_download or "files" in content else []
        listed += list_outputs(file, content)
        has_digests = OWN_DIGEST in content or OUTPUT_DIGESTS in content
        if has_digests and not is_record_unchanged(file):
            return [f"{file} differs from its own {OWN_DIGEST}"]
    except UserError as error:
        return [str(error)]
    chosen = [(part, sha256) for part, sha256 in listed if only is None or part in only]
    return list(_compare_files(file, chosen))


def _compare_files(file: Path, listed: list[tuple[Path, str]]) -> Iterator[str]:
    """Yield a sentence for each listed file that is there and differs."""
    for part, sha256 in listed:
        if part.is_file() and hash_file(part) != sha256:
            yield f"{part} differs from the sha256 in {file.name}"


def list_listed_files(manifest: Path, content: dict[str, Any]) -> list[tuple[Path, str]]:
    """Return the files that a manifest names, each with its sha256.

    Raises UserError if they are no mapping.
    """
    if "files" not in content:  # of a download, whose manifest is <file>.json
        return [(manifest.with_suffix(""), content.get("sha256", ""))]
    if not isinstance(content["files"], dict):
        raise UserError(f"{manifest}: 'files' must be a mapping; {HOW_TO_FIX}")
    listed = []
    for name, entry in content["files"].items():
        sha256 = entry.get("sha256", "") if isinstance(entry, dict) else entry
        listed.append((manifest.parent / name, sha256))
    return listed


def list_outputs(record: Path, content: dict[str, Any]) -> list[tuple[Path, str]]:
    """Return the files next to a record that it names, each with its sha256.

    Records of earlier versions name none. Raises UserError if they are no mapping.
    """
    outputs = content.get(OUTPUT_DIGESTS, {})
    if not isinstance(outputs, dict):
        raise UserError(f"{record}: '{OUTPUT_DIGESTS}' must be a mapping; {HOW_TO_FIX}")
    return [(record.parent / name, sha256) for name, sha256 in outputs.items()]
