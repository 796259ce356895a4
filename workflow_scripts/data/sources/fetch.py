"""Fetch one source file from a mirror folder or else its URLs, and check it against sources.yaml."""

import os
import shutil
from pathlib import Path

from filelock import FileLock

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_file, write_json
from workflow_scripts.data.sources.declared import Source, find_expected_sha256, locate_recorded_sha256
from workflow_scripts.data.sources.download import Advance, RetryPolicy, count_bytes, download_checked


def fetch_source(source: Source, downloads: Path, mirror: Path | None, policy: RetryPolicy, advance: Advance) -> str:
    """Fetch the declared file to `downloads/<dataset>/<file>` if needed. Returns a short note on its origin.

    A wrong file is never kept; a partial download is kept as `<file>.part`. Raises UserError with the failed attempts.
    """
    path = downloads / source.name
    path.parent.mkdir(parents=True, exist_ok=True)
    locks = downloads / ".locks"
    locks.mkdir(exist_ok=True)
    with FileLock(locks / source.name.replace("/", "--")):
        if path.exists():
            wrong = [describe_mismatch(packing, path, path) for packing in source.alternatives]
            if None in wrong:
                return "already there" + record_unpinned(source, path)
            if source.sha256 is None:
                recorded = locate_recorded_sha256(path).name
                raise UserError(f"{path} {wrong[0]}; delete it and {recorded} to fetch it again")
        problems = []
        part = path.with_name(f"{path.name}.part")
        origins = [(packing, str(mirror / source.name)) for packing in source.alternatives] if mirror else []
        origins += [(packing, url) for packing in source.alternatives for url in packing.urls]
        for packing, origin in origins:
            problem = try_origin(packing, origin, part, path, policy, advance)
            if problem is None:
                os.replace(part, path)
                after = f" (after {'; '.join(problems)})" if problems else ""
                return f"from {origin}{after}{record_unpinned(source, path)}"
            problems.append(problem)
    tried = f"tried {'; '.join(problems)}" if problems else "no mirror is set, and it has no URL"
    note = f" ({source.note})" if source.note else ""
    where = f"at {path}, or at {source.name} in a mirror folder (data.mirror in config.yaml)"
    raise UserError(f"{source.name} is missing: {tried}; get it by other means{note} and put it {where}")


def write_source_manifest(source: Source, path: Path) -> None:
    """Write <file>.json next to a file: name, sha256, bytes and licence. It changes only if the file changes."""
    content = {"name": source.name, "sha256": hash_file(path), "bytes": count_bytes(path), "licence": source.licence}
    write_json(path.with_name(f"{path.name}.json"), content)


def try_origin(
    source: Source, origin: str, part: Path, path: Path, policy: RetryPolicy, advance: Advance
) -> str | None:
    """Fill `part` from one origin, a path or a URL. Returns None, or the problem; a wrong file is deleted."""

    def find_problem(file: Path) -> str | None:
        return describe_mismatch(source, file, path)

    if origin in source.urls:
        try:
            download_checked(origin, part, source.bytes, source.sha256 is not None, find_problem, advance, policy)
        except UserError as error:
            return str(error)
        return None
    if not Path(origin).is_file():
        return f"{origin}: no such file"
    shutil.copyfile(origin, part)
    if wrong := find_problem(part):
        part.unlink()
        return f"{origin} {wrong}, nothing was kept"
    return None


def describe_mismatch(source: Source, file: Path, path: Path) -> str | None:
    """Describe how `file` differs from its declared size or its declared or recorded sha256, or return None."""
    if source.bytes and count_bytes(file) != source.bytes:
        return f"has the wrong size: expected {source.bytes} bytes, actual {count_bytes(file)}"
    expected, actual = find_expected_sha256(source, path), hash_file(file)
    if expected and expected != actual:
        return f"has the wrong sha256: expected {expected}, actual {actual}"
    return None


def record_unpinned(source: Source, path: Path) -> str:
    """Record the sha256 of a file without a declared one, unless recorded already. Returns a note, "" if declared."""
    if source.sha256:
        return ""
    if not locate_recorded_sha256(path).exists():
        locate_recorded_sha256(path).write_text(f"{hash_file(path)}  {path.name}\n")
    return f"; unpinned ({source.note}): compared with {locate_recorded_sha256(path).name} from now on"
