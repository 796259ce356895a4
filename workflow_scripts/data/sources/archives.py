"""Read lines of text files, and zip and tar archives without trusting their paths, types and sizes.

Only `unpack_zip` writes files.
"""

import bz2
import gzip
import io
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any

from workflow_scripts.common.errors import UserError

LARGEST = 64 * 2**20  # bytes of one file; the largest file needed, WordNet's data.noun, has 15 MB
MAX_FILES = 1_000_000
MAX_RATIO = 200  # text is compressed 5 to 20 times, a zip bomb 1000 times
MIN_ALLOWED = 2**28  # bytes that even the smallest archive may unpack to
BROKEN = (
    OSError,
    EOFError,
    RuntimeError,
    tarfile.TarError,
    zipfile.BadZipFile,
    lzma.LZMAError,
    zlib.error,
)
# Other errors of the standard library's readers when headers are damaged.
DAMAGED = (*BROKEN, ValueError, TypeError, LookupError)
OPENERS = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
DEBIAN = b"!<arch>\n"


@contextmanager
def report_broken(path: Path, errors: tuple[type[Exception], ...] = BROKEN) -> Iterator[None]:
    """Raise UserError for an error in the block because a file or archive is missing or broken."""
    try:
        yield
    except errors as error:
        reason = str(error).partition("\n")[0].rstrip(":")
        raise UserError(f"{path} cannot be read ({reason}); fetch it again") from error


class LimitedStream(io.RawIOBase):
    """The unpacked content of the archive at `path`, or of one of its files.

    Reading raises UserError where it is damaged, and after as many bytes as it may unpack to.
    """

    def __init__(self, stream: IO[bytes], path: Path) -> None:
        self.stream = stream
        self.path = path
        self.count = 0

    def readable(self) -> bool:
        """Return True: this is a stream to read from."""
        return True

    def readinto(self, buffer) -> int:
        """Fill the buffer as far as content is left and return the number of bytes."""
        with report_broken(self.path, DAMAGED):
            content = self.stream.read(len(buffer))
        self.count += len(content)
        check_limits(self.path, self.count)
        buffer[: len(content)] = content
        return len(content)


def check_limits(path: Path, n_bytes: int, n_files: int = 0) -> None:
    """Raise UserError if the archive at `path` unpacks to more bytes or files than it may."""
    allowed = max(MIN_ALLOWED, MAX_RATIO * path.stat().st_size)
    if n_bytes > allowed or n_files > MAX_FILES:
        raise UserError(
            f"{path} unpacks to more than {allowed:,} bytes or {MAX_FILES:,} files; do not use it"
        )


def unpack_stream(stream: Any, path: Path) -> IO[bytes]:
    """Return the content of a buffered stream from the archive at `path`.

    It is decompressed if it is gz, bz2 or xz. Reading it raises UserError where it is damaged, and
    after as many bytes as it may unpack to.
    """
    content = stream
    for magic, opener in OPENERS.items():
        if stream.peek(6).startswith(magic):
            content = opener(stream)
            break
    return io.BufferedReader(LimitedStream(content, path), 2**20)


def iterate_archive(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield (name, content) of the regular files of a zip, tar or deb.

    Raises UserError if broken or too large; so does reading the content.
    """
    with report_broken(path, DAMAGED):
        members = _iterate_zip(path) if zipfile.is_zipfile(path) else _iterate_tar(path)
        for name, content in members:
            yield name, io.BufferedReader(LimitedStream(content, path))


def _iterate_zip(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield (name, content) of the regular files of a zip."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        check_limits(path, sum(member.file_size for member in members), len(members))
        for member in members:
            if member.is_dir() or is_link(member):
                continue
            with archive.open(member) as content:
                yield member.filename, content


def _iterate_tar(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield (name, content) of the regular files of a tar, or of the tar in a deb."""
    with ExitStack() as opened:
        packed = opened.enter_context(open(path, "rb"))
        if packed.peek(len(DEBIAN)).startswith(DEBIAN):
            packed = find_debian_data(packed)
        tar = opened.enter_context(tarfile.open(fileobj=unpack_stream(packed, path), mode="r|"))
        for count, entry in enumerate(tar, start=1):
            check_limits(path, 0, count)
            content = tar.extractfile(entry) if entry.isfile() else None
            if content is not None:
                yield entry.name, content


def is_link(member: zipfile.ZipInfo) -> bool:
    """Return whether a member of a zip archive is a symbolic link."""
    return stat.S_ISLNK(member.external_attr >> 16)


def unpack_zip(path: Path, folder: Path) -> None:
    """Unpack a zip archive into a folder.

    Raises UserError, and writes nothing, for a broken or too large archive, a link, a repeated name
    or one outside.
    """
    with report_broken(path, DAMAGED), zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        check_limits(path, sum(member.file_size for member in members), len(members))
        counts = Counter(str(PurePosixPath(member.filename)) for member in members)
        for member in members:
            name = PurePosixPath(member.filename)
            if name.is_absolute() or ".." in name.parts or "\\" in member.filename:
                raise UserError(
                    f"{path}: contains {name}, which would be written elsewhere; do not unpack it"
                )
            if is_link(member):
                raise UserError(f"{path}: contains the link {name}; do not unpack it")
            if counts[str(name)] > 1:
                raise UserError(f"{path}: contains {name} twice; do not unpack it")
        archive.extractall(folder)


def read_members(path: Path, names: set[str]) -> dict[str, bytes]:
    """Read the regular files with these names: name -> content.

    They are anywhere in an archive or at the top of a folder. Raises UserError if it is broken, or
    if one of the files is missing, occurs twice or exceeds LARGEST bytes.
    """
    contents: dict[str, bytes] = {}
    with report_broken(path):
        if path.is_dir():
            members = iterate_folder(path, names)
        else:
            members = iterate_archive(path)
        for member, stream in members:
            name = PurePosixPath(member).name
            if name not in names:
                continue
            if name in contents:
                raise UserError(
                    f"{path}: holds two files {name}; give an archive or folder with one"
                )
            contents[name] = stream.read(LARGEST + 1)
            if len(contents[name]) > LARGEST:
                raise UserError(
                    f"{path}: {member} has more than {LARGEST} bytes; fetch the archive again"
                )
    missing = sorted(names - contents.keys())
    if missing:
        raise UserError(f"{path}: has no file {missing[0]}; fetch it again")
    return contents


def iterate_folder(folder: Path, names: set[str]) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield (name, content) of the regular files with these names at the top of a folder."""
    for file in sorted(folder.iterdir()):
        if file.is_file() and file.name in names:
            with open(file, "rb") as stream:
                yield file.name, stream


def read_lines(path: Path, name: str = "") -> Iterator[tuple[int, str]]:
    """Yield (number from 1, text without line end) of the lines of a UTF-8 file.

    It is `name` in an archive or folder, else `path` itself. Only LF or CRLF ends a line. Raises
    UserError if the file is missing, broken or not UTF-8.
    """
    if not path.exists():
        raise UserError(f"{path} does not exist; give the path of a text file, or fetch it")
    file = f"{path}: {name}" if name else path
    encoding = "utf-8-sig"  # a byte order mark can only be at the start of the file
    with report_broken(path):
        for number, line in enumerate(_iterate_lines(path, name), start=1):
            try:
                text = line.decode(encoding)
            except UnicodeDecodeError:
                raise UserError(
                    f"{file}:{number}: not UTF-8 text; save it as UTF-8, or fetch it again"
                ) from None
            encoding = "utf-8"
            yield number, text.rstrip("\r\n")


def _iterate_lines(path: Path, name: str) -> Iterator[bytes]:
    """Yield the lines of a file, as `read_lines` finds it, with their ends."""
    file = path
    if path.is_dir():
        file = path / name
    with open(file, "rb") as stream:
        if not name or not is_packed(file, stream.peek(262)):
            yield from unpack_stream(stream, file)
            return
    for member, content in iterate_archive(file):
        if PurePosixPath(member).name == name:
            yield from content
            return
    raise UserError(f"{file}: {name} missing; fetch the archive again")


def is_packed(path: Path, start: bytes) -> bool:
    """Return whether a file, of which `start` are the first bytes, is an archive or compressed."""
    if zipfile.is_zipfile(path) or start.startswith(tuple(OPENERS)):
        return True
    return start[257:262] == b"ustar"  # the mark of a tar archive


def read_numbered_lines(path: Path, name: str = "") -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, text) like `read_lines`, without blank lines."""
    for number, text in read_lines(path, name):
        if text.strip():
            yield number, text


def read_text_lines(path: Path) -> list[str]:
    """Read all lines like `read_lines`. Raises UserError for a blank line or an empty file."""
    lines = [text for _, text in read_lines(path)]
    for number, text in enumerate(lines, start=1):
        if not text.strip():
            raise UserError(f"{path}:{number}: an empty line; each line must be a sentence")
    if not lines:
        raise UserError(f"{path}: no lines; is this the right file?")
    return lines


def read_aligned_lines(paths: Sequence[Path]) -> list[tuple[str, ...]]:
    """Read files whose n-th lines belong together, as one tuple per n.

    Raises UserError if the line counts differ.
    """
    columns = [read_text_lines(path) for path in paths]
    for path, column in zip(paths[1:], columns[1:], strict=True):
        if len(column) != len(columns[0]):
            raise UserError(
                f"{path} has {len(column)} lines, but {paths[0]} has {len(columns[0])}; "
                "give aligned files"
            )
    return list(zip(*columns, strict=True))


def find_debian_data(package: IO[bytes]) -> io.BufferedReader:
    """Return data.tar of a Debian package (deb(5), an ar archive), still compressed."""
    package.seek(len(DEBIAN))
    while len(header := package.read(60)) == 60:
        name = header[:16].decode("ascii", "replace").strip()
        length = header[48:58].decode("ascii", "replace").strip()
        if not header.endswith(b"`\n") or not length.isdecimal():
            break
        n_bytes = int(length)
        if name.startswith("data.tar"):
            return io.BufferedReader(io.BytesIO(package.read(n_bytes)))
        package.seek(n_bytes + n_bytes % 2, io.SEEK_CUR)  # members begin at even positions
    raise tarfile.ReadError("no data.tar in the package")
