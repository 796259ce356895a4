"""Downloading one URL to one file: resumed where it broke off, tried again after passing faults."""

import email.utils
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx

from workflow_scripts.common.errors import UserError

PASSING_FAULTS = {408, 425, 429, 500, 502, 503, 504}
TIMEOUT = httpx.Timeout(30, connect=10)  # seconds without a byte

Advance = Callable[[int, int | None], None]  # called with (bytes so far, bytes in all if known)


@dataclass(frozen=True)
class Patience:
    """How long to bear with a server.

    `attempts` in a row may bring no new byte, `connection_attempts` no connection; the waits between them double from
    `first_wait` seconds on. A server's Retry-After is heeded up to `longest_wait` seconds.
    """

    attempts: int = 5
    connection_attempts: int = 3
    first_wait: float = 1.0
    longest_wait: float = 60.0


class PassingError(Exception):
    """Worth another attempt, after `wait` seconds if the server said so."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


def download(
    url: str,
    part: Path,
    expected_bytes: int | None,
    pinned: bool,
    advance: Advance,
    patience: Patience,
    headers: dict[str, str] | None = None,
) -> None:
    """Fill `part` with the body of `url`, going on from what `part` already holds where the server can.

    Without a checksum to come (`pinned` false), it goes on only where the server vouches by a strong ETag that the file
    is the same, else from the start. Raises UserError in one line when the server refuses, offers another size than
    `expected_bytes`, or stays unreachable. After a broken connection `part` keeps what was received. An Authorization
    among `headers` is not sent on to another host that the server redirects to.
    """
    validator = ""
    idle = 0
    with httpx.Client(
        timeout=TIMEOUT,
        follow_redirects=True,
        max_redirects=5,
        event_hooks={"response": [refuse_unsafe_redirect]},
        # A body that is compressed on the way has neither the size of the file nor its offsets.
        headers={"Accept-Encoding": "identity", **(headers or {})},
    ) as client:
        while True:
            if not (pinned or validator):
                part.unlink(missing_ok=True)
            before = size(part)
            asked = {"Range": f"bytes={before}-"} if before else {}
            if before and validator:
                asked["If-Range"] = validator
            try:
                with client.stream("GET", url, headers=asked) as response:
                    if response.is_success:
                        validator = response.headers.get("ETag", "")
                        validator = "" if validator.startswith("W/") else validator
                    receive(response, url, part, expected_bytes, advance)
                return
            except (PassingError, httpx.TransportError) as fault:
                if isinstance(fault, httpx.UnsupportedProtocol):
                    raise UserError(f"{url}: {fault}") from fault
                idle = 1 if size(part) > before else idle + 1
                no_connection = isinstance(fault, httpx.ConnectError | httpx.ConnectTimeout)
                if idle >= (patience.connection_attempts if no_connection else patience.attempts):
                    raise UserError(f"{url}: {str(fault) or type(fault).__name__}, {idle} times in a row") from fault
                wait = patience.first_wait * 2 ** (idle - 1)
                if isinstance(fault, PassingError) and fault.wait is not None:
                    wait = fault.wait
                time.sleep(min(wait, patience.longest_wait))
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise UserError(f"{url}: {error}") from error


def receive(response: httpx.Response, url: str, part: Path, expected_bytes: int | None, advance: Advance) -> None:
    """Write the body of one response to `part`: appended to it (206), or from the start (200).

    Raises PassingError for what may go away, UserError for what will not.
    """
    status = response.status_code
    if status in PASSING_FAULTS:
        raise PassingError(f"HTTP status {status}", retry_after(response.headers.get("Retry-After", "")))
    if status == 416:
        part.unlink(missing_ok=True)
        raise PassingError("HTTP status 416: the server has fewer bytes than were kept; starting again")
    if status not in (200, 206):
        raise UserError(f"{url}: HTTP status {status} {response.reason_phrase}".rstrip())
    offset = size(part) if status == 206 else 0
    if status == 206 and not response.headers.get("Content-Range", "").startswith(f"bytes {offset}-"):
        part.unlink(missing_ok=True)
        raise PassingError("the server sent another range than was asked for; starting again")
    length = response.headers.get("Content-Length", "")
    total = offset + int(length) if length.isdecimal() else None
    if expected_bytes is not None and total not in (None, expected_bytes):
        part.unlink(missing_ok=True)
        raise UserError(f"{url}: wrong size: expected {expected_bytes} bytes, the server offers {total}")
    done = offset
    with open(part, "ab" if offset else "wb") as stream:
        for chunk in response.iter_raw():
            done += len(chunk)
            if expected_bytes is not None and done > expected_bytes:
                break
            stream.write(chunk)
            advance(done, expected_bytes or total)
    if expected_bytes is not None and done > expected_bytes:
        part.unlink()
        raise UserError(f"{url}: wrong size: expected {expected_bytes} bytes, the server sends more")
    if expected_bytes is not None and done < expected_bytes:
        raise PassingError(f"the body ended after {done} of {expected_bytes} bytes")


def refuse_unsafe_redirect(response: httpx.Response) -> None:
    """Follow redirects to http and https only, and never from https to http. Raises UserError."""
    if response.has_redirect_location:
        target = response.url.join(response.headers["Location"])
        if target.scheme != "https" and (target.scheme, response.url.scheme) != ("http", "http"):
            # Only the scheme: the rest may hold a signature.
            raise UserError(
                f"{response.url.host} redirects from {response.url.scheme} to {target.scheme}: not followed"
            )


def retry_after(value: str) -> float | None:
    """Seconds that a Retry-After header asks for, given as seconds or as a date; None for anything else."""
    if value.strip().isdecimal():
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None


def size(path: Path) -> int:
    """Bytes of a file, 0 where there is none."""
    return path.stat().st_size if path.exists() else 0
