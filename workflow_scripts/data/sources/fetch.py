"""Fetch one source file from a mirror folder or else its URLs, and check it against sources.yaml."""

import os
import shutil
from functools import partial
from pathlib import Path

from filelock import FileLock

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_file, write_csv, write_json
from workflow_scripts.common.system import get_utc_time
from workflow_scripts.data.sources.declared import TRUSTED, TRUSTED_COLUMNS, Source, find_expected_sha256, read_trusted
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
            wrong = [describe_mismatch(packing, path) for packing in source.alternatives]
            if None in wrong:
                return "already there" + record_unpinned(source, path, locks)
            if source.sha256 is None:
                raise UserError(f"{path} {wrong[0]}; delete it, and its line in {TRUSTED} if that is wrong")
        problems = []
        part = path.with_name(f"{path.name}.part")
        origins = [(packing, str(mirror / source.name)) for packing in source.alternatives] if mirror else []
        origins += [(packing, url) for packing in source.alternatives for url in packing.urls]
        for packing, origin in origins:
            problem = try_origin(packing, origin, part, policy, advance)
            if problem is None:
                os.replace(part, path)
                after = f" (after {'; '.join(problems)})" if problems else ""
                return f"from {origin}{after}{record_unpinned(source, path, locks)}"
            problems.append(problem)
    tried = f"tried {'; '.join(problems)}" if problems else "no mirror is set, and it has no URL"
    note = f" ({source.note})" if source.note else ""
    where = f"at {path}, or at {source.name} in a mirror folder (data.mirror in config.yaml)"
    raise UserError(f"{source.name} is missing: {tried}; get it by other means{note} and put it {where}")


def write_source_manifest(source: Source, path: Path) -> None:
    """Write <file>.json next to a file: name, sha256, bytes and licence. It changes only if the file changes."""
    content = {"name": source.name, "sha256": hash_file(path), "bytes": count_bytes(path), "licence": source.licence}
    write_json(path.with_name(f"{path.name}.json"), content)


def try_origin(source: Source, origin: str, part: Path, policy: RetryPolicy, advance: Advance) -> str | None:
    """Fill `part` from one origin, a path or a URL. Returns None, or the problem; a wrong file is deleted."""
    find_problem = partial(describe_mismatch, source)
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


def describe_mismatch(source: Source, file: Path) -> str | None:
    """Describe how `file` differs from its declared size or its declared or trusted sha256, or return None."""
    if source.bytes and count_bytes(file) != source.bytes:
        return f"has the wrong size: expected {source.bytes} bytes, actual {count_bytes(file)}"
    expected, actual = find_expected_sha256(source), hash_file(file)
    if expected and expected != actual:
        where = "" if source.sha256 else f" ({TRUSTED})"
        return f"has the wrong sha256: expected {expected}{where}, actual {actual}"
    return None


def record_unpinned(source: Source, path: Path, locks: Path) -> str:
    """Add a file without a declared sha256 to trusted.csv, unless it is there. Returns a note, "" if declared."""
    if source.sha256:
        return ""
    with FileLock(locks / TRUSTED.name):
        row = source.name, hash_file(path), count_bytes(path), get_utc_time()[:10]
        trusted = {source.name: dict(zip(TRUSTED_COLUMNS, row, strict=True))} | read_trusted()
        write_csv(TRUSTED, TRUSTED_COLUMNS, [trusted[name] for name in sorted(trusted)])
    return f"; unpinned ({source.note}): compared with {TRUSTED} from now on"
