"""Reading files out of archives into memory: nothing is extracted, so that no path of an archive is trusted."""

import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import IO

from workflow_scripts.common.errors import UserError

LARGEST = 64 * 2**20  # bytes of one file: the largest that is wanted, data.noun of WordNet, has 15 MB


def read_members(path: Path, wanted: set[str]) -> dict[str, bytes]:
    """Contents by file name of those regular files, anywhere in a zip or tar archive or a Debian package or straight in
    a folder, that have a wanted name.

    Raises UserError when `path` is neither, is broken, holds a wanted name twice, or holds a file over LARGEST bytes.
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

    try:
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
    except (OSError, EOFError, RuntimeError, tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error) as error:
        reason = str(error).partition("\n")[0].rstrip(":")
        raise UserError(
            f"{path}: cannot be read as a folder, zip or tar archive, or Debian package ({reason}); get it again"
        ) from error
    return found


def read_lines(path: Path, name: str) -> Iterator[tuple[int, str]]:
    """(number from 1, text without its end) of each line of the UTF-8 file `name` in a zip or tar archive, or of `path`
    itself where it is neither. Lines are read as they are asked for: the file may be large.

    Raises UserError when the archive has no such file or is broken, or when a line is not UTF-8.
    """
    number = 0
    try:
        with ExitStack() as opened:
            for number, line in enumerate(_member(path, name, opened), start=1):
                # A text may hold any of the signs that Python takes for the end of a line, but for this one.
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise UserError(f"{path}: {name}:{number}: not UTF-8 text; fetch it again") from None
    except (OSError, EOFError, RuntimeError, tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error) as error:
        reason = str(error).partition("\n")[0].rstrip(":")
        raise UserError(f"{path} cannot be read ({reason}); fetch it again") from error


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
    """The bytes of a tar archive: the file itself, or the files of a Debian package (deb(5), an ar archive)."""
    content = path.read_bytes()
    if not content.startswith(b"!<arch>\n"):
        return io.BytesIO(content)
    start = 8
    while header := content[start : start + 60]:
        name, length = (
            header[:16].decode("ascii", "replace").strip().rstrip("/"),
            header[48:58].decode("ascii", "replace"),
        )
        if not (header.endswith(b"`\n") and length.strip().isdecimal()):
            break
        start += 60
        if name.startswith("data.tar"):
            return io.BytesIO(content[start : start + int(length)])
        start += int(length) + int(length) % 2
    raise tarfile.ReadError("no data.tar in the package")
