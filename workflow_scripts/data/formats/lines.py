"""Reading of text files line by line, so that an error can name the line."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from workflow_scripts.common.errors import UserError


def read_numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, text) of a UTF-8 file, without line ends (LF or CRLF) and without blank lines.

    Only LF ends a line: form feeds and Unicode separators are text. Raises UserError with file and line for bytes that
    are not UTF-8.
    """
    for number, text in enumerate(_lines(path), start=1):
        if text.strip():
            yield number, text


def read_text_lines(path: Path) -> list[str]:
    """Read the lines of a UTF-8 file like `numbered_lines`. Raises UserError for a blank line or an empty file."""
    lines = []
    for number, text in enumerate(_lines(path), start=1):
        if not text.strip():
            raise UserError(f"{path}:{number}: an empty line; each line must be a sentence")
        lines.append(text)
    if not lines:
        raise UserError(f"{path}: no lines; is this the right file?")
    return lines


def read_aligned_lines(paths: Sequence[Path]) -> list[tuple[str, ...]]:
    """Read files whose n-th lines belong together, as one tuple per n. Raises UserError if the line counts differ."""
    columns = [read_text_lines(path) for path in paths]
    for path, column in zip(paths[1:], columns[1:], strict=True):
        if len(column) != len(columns[0]):
            raise UserError(f"{path} has {len(column)} lines, but {paths[0]} has {len(columns[0])}; give aligned files")
    return list(zip(*columns, strict=True))


def _lines(path: Path) -> Iterator[str]:
    try:
        with open(path, "rb") as stream:
            for number, raw in enumerate(stream, start=1):
                try:
                    yield raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                except UnicodeDecodeError as error:
                    raise UserError(f"{path}:{number}: not UTF-8 text; save it as UTF-8, or fetch it again") from error
    except FileNotFoundError as error:
        raise UserError(f"{path} does not exist; give the path of a text file") from error
