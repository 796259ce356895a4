"""Parallel text in tar archives and SGML, and work on more lines than fit into memory.

The work is in chunks, by processes.
"""

import os
import re
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice, zip_longest
from multiprocessing import get_context
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.sources.archives import iterate_archive, report_broken, unpack_stream

Item = TypeVar("Item")
Result = TypeVar("Result")
PROCESSES = 8  # at most, of about a GB each: the threads of the rule prepare_large
SEGMENT = re.compile(r"<seg id[^>]*>(.*?)</seg>")


def extract_files(archive: Path, files: dict[str, Path]) -> None:
    """Copy files out of a tar archive, decompressed: name -> target.

    Raises UserError if it is broken or lacks one.
    """
    missing = dict(files)
    with report_broken(archive):
        for name, content in iterate_archive(archive):
            if target := missing.pop(str(PurePosixPath(name)), None):
                with open(target, "wb") as out:
                    shutil.copyfileobj(unpack_stream(content, archive), out, 2**20)
            if not missing:
                return
    raise UserError(f"{archive}: has no {next(iter(missing))}; fetch it again")


def pair_lines(source: Path, target: Path, place: str) -> Iterator[tuple[str, str]]:
    """Yield aligned lines of two files, with U+FFFD for what is not UTF-8.

    Raises UserError, beginning with `place`, if one has more lines.
    """
    with open(source, "rb") as source_lines, open(target, "rb") as target_lines:
        pairs = zip_longest(source_lines, target_lines)
        for number, (source_line, target_line) in enumerate(pairs, start=1):
            if source_line is None or target_line is None:
                n_source = n_target = number - 1
                if target_line is None:
                    n_source += 1 + sum(1 for _ in source_lines)
                else:
                    n_target += 1 + sum(1 for _ in target_lines)
                raise UserError(
                    f"{place}: {n_source} lines on one side, {n_target} on the other; "
                    "fetch it again"
                )
            yield (
                source_line.decode(errors="replace").rstrip("\r\n"),
                target_line.decode(errors="replace").rstrip("\r\n"),
            )


def read_segments(path: Path, place: str) -> list[str]:
    """Return the text of each `<seg id="..">` of an SGML test set, in order.

    Raises UserError, beginning with `place`, if there is none.
    """
    content = path.read_text(encoding="utf-8", errors="replace")
    segments = [text.strip() for text in SEGMENT.findall(content)]
    if not segments:
        raise UserError(f"{place}: has no segments '<seg id=\"1\"> ... </seg>'; fetch it again")
    return segments


def split_into_chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield lists of `size` items; the last may be shorter."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def map_in_order(
    function: Callable[..., Result], items: Iterable[Item], *others: Any
) -> Iterator[Result]:
    """Yield results in order, reading only a few items ahead.

    Raises UserError if a process was killed.
    """
    waiting: deque = deque()
    workers = min(PROCESSES, os.cpu_count() or 1)
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item, *others))
                if len(waiting) > 3 * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool as error:
            raise UserError(
                "a process that reads text was killed; see that there is enough memory"
            ) from error


def iterate_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text file without line ends.

    Only LF ends a line; Unicode's other line ends are text.
    """
    with open(path, newline="\n", encoding="utf-8") as stream:
        for line in stream:
            yield line.rstrip("\n")
