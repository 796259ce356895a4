"""Reading the text files of data sets line by line, so that an error can name the line."""

from collections.abc import Iterator
from pathlib import Path

from workflow_scripts.errors import UserError


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, text) of a UTF-8 file, without line ends of either kind; blank lines are left out.

    Only LF ends a line: form feeds and Unicode separators belong to the text. Raises UserError for bytes that are not
    UTF-8, naming file and line.
    """
    with open(path, "rb") as stream:
        for number, raw in enumerate(stream, start=1):
            try:
                text = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise UserError(f"{path}:{number}: not UTF-8 text; fetch the file again") from error
            if text.strip():
                yield number, text
