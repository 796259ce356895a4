"""Parallel text in tar archives and SGML, and work on more lines than fit into memory: in chunks, by processes."""

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

Item, Result = TypeVar("Item"), TypeVar("Result")
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


def pair_lines(source: Path, target: Path, where: str) -> Iterator[tuple[str, str]]:
    """Yield aligned lines of two files, with U+FFFD for what is not UTF-8.

    Raises UserError if one has more lines.
    """
    with open(source, "rb") as one, open(target, "rb") as other:
        for number, (left, right) in enumerate(zip_longest(one, other), start=1):
            if left is None or right is None:
                rest = 1 + sum(1 for _ in (one if right is None else other))
                counts = (
                    (number - 1 + rest, number - 1)
                    if right is None
                    else (number - 1, number - 1 + rest)
                )
                raise UserError(
                    f"{where}: {counts[0]} lines on one side, {counts[1]} on the other; fetch it again"
                )
            yield (
                left.decode(errors="replace").rstrip("\r\n"),
                right.decode(errors="replace").rstrip("\r\n"),
            )


def read_segments(path: Path, where: str) -> list[str]:
    """Return the text of each `<seg id="..">` of an SGML test set, in order.

    Raises UserError if there is none.
    """
    found = [
        text.strip() for text in SEGMENT.findall(path.read_text(encoding="utf-8", errors="replace"))
    ]
    if not found:
        raise UserError(f"{where}: has no segments '<seg id=\"1\"> ... </seg>'; fetch it again")
    return found


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
