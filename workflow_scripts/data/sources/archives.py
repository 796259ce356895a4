"""Reading of files inside archives into memory. Nothing is extracted, so no path in an archive has to be trusted."""

import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from workflow_scripts.common.errors import UserError

LARGEST = 64 * 2**20  # bytes of one file; the largest file needed, WordNet's data.noun, has 15 MB
BROKEN = (OSError, EOFError, RuntimeError, tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error)


@contextmanager
def report_broken(path: Path) -> Iterator[None]:
    """Raise UserError for an error that occurs in the block because a file or archive is missing or broken."""
    try:
        yield
    except BROKEN as error:
        reason = str(error).partition("\n")[0].rstrip(":")
        raise UserError(f"{path} cannot be read ({reason}); fetch it again") from error


def iterate_tar(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield (name, content) of the regular files of a tar archive in one pass; use it in `report_broken`."""
    with tarfile.open(archive, "r|*") as members:
        for member in members:
            if member.isfile():
                yield member.name, members.extractfile(member)


def read_members(path: Path, wanted: set[str]) -> dict[str, bytes]:
    """Read the regular files with the wanted names from an archive or folder: file name -> content.

    `path` is a zip or tar archive or a Debian package, with files at any depth, or a folder, with files at its top.
    Raises UserError if it is none of these or broken, or if a wanted file occurs twice or exceeds LARGEST bytes.
    """
    found: dict[str, bytes] = {}

    def keep(member: str, size: int, read) -> None:
        name = PurePosixPath(member).name
        if name not in wanted:
            return
        if name in found:
            raise UserError(f"{path}: holds two files {name}; give an archive or folder with one")
        if size > LARGEST:
            raise UserError(f"{path}: {member} has {size} bytes, more than {LARGEST}; fetch the archive again")
        found[name] = read()

    with report_broken(path):
        if path.is_dir():
            for file in sorted(path.iterdir()):
                if file.is_file():
                    keep(file.name, file.stat().st_size, file.read_bytes)
        elif zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                for member in archive.infolist():
                    if not member.is_dir():
                        keep(member.filename, member.file_size, lambda member=member: archive.read(member))
        else:
            with tarfile.open(fileobj=_tar(path)) as archive:
                for member in archive:
                    if member.isfile():
                        keep(member.name, member.size, lambda member=member: archive.extractfile(member).read())
    return found


def read_lines(path: Path, name: str) -> Iterator[tuple[int, str]]:
    """Yield (number from 1, text without line end) of a UTF-8 file: `name` in a zip or tar archive, else `path` itself.

    Lines are read lazily, because the file may be large. Raises UserError if the archive has no such file or is broken,
    or if a line is not UTF-8.
    """
    with report_broken(path), ExitStack() as opened:
        for number, line in enumerate(_member(path, name, opened), start=1):
            try:
                # Only LF ends a line: texts may contain the other characters at which str.splitlines splits.
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError:
                raise UserError(f"{path}: {name}:{number}: not UTF-8 text; fetch it again") from None


def _member(path: Path, name: str, opened: ExitStack) -> IO[bytes]:
    if zipfile.is_zipfile(path):
        archive = opened.enter_context(zipfile.ZipFile(path))
        for member in archive.namelist():
            if PurePosixPath(member).name == name:
                return opened.enter_context(archive.open(member))
    elif tarfile.is_tarfile(path):
        archive = opened.enter_context(tarfile.open(path, mode="r|*"))  # noqa: SIM115
        for member in archive:
            if member.isfile() and PurePosixPath(member.name).name == name:
                return archive.extractfile(member)
    else:
        return opened.enter_context(open(path, "rb"))
    raise UserError(f"{path}: {name} missing; fetch the archive again")


def _tar(path: Path) -> io.BytesIO:
    """Return the bytes of a tar archive: the file itself, or data.tar of a Debian package (deb(5), an ar archive)."""
    content = path.read_bytes()
    if not content.startswith(b"!<arch>\n"):
        return io.BytesIO(content)
    start = 8
    while header := content[start : start + 60]:
        name, length = (header[part].decode("ascii", "replace").strip() for part in (slice(16), slice(48, 58)))
        if not (header.endswith(b"`\n") and length.isdecimal()):
            break
        start += 60
        if name.startswith("data.tar"):
            return io.BytesIO(content[start : start + int(length)])
        start += int(length) + int(length) % 2
    raise tarfile.ReadError("no data.tar in the package")
