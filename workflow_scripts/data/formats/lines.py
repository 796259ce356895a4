"""Reading of text files line by line, so that an error can name the line."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.sources.archives import read_lines


def read_numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, text) like `read_lines`, without blank lines."""
    return ((number, text) for number, text in read_lines(path) if text.strip())


def read_text_lines(path: Path) -> list[str]:
    """Read all lines like `read_lines`. Raises UserError for a blank line or an empty file."""
    lines = [text for _, text in read_lines(path)]
    if blank := next((number for number, text in enumerate(lines, start=1) if not text.strip()), None):
        raise UserError(f"{path}:{blank}: an empty line; each line must be a sentence")
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
