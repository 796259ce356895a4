"""What data sets share that are too large for memory: their module writes the files itself."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

Item, Result = TypeVar("Item"), TypeVar("Result")


@dataclass
class Streamed:
    """What the `prepare` function of a data module returns that can hold its data in files only.

    fill: writes the Parquet file of each split, and what else training reads, into a folder and cleans up behind
        itself; returns what dataset.json is to say of them: `splits` (name -> counts, `rows` among them), and more.
    protocol: the best that these data allow: `paper`, `reduced` or `stand_in`.
    """

    fill: Callable[[Path], dict[str, Any]]
    notes: list[str]
    protocol: str = "paper"


def fill(prepared: Streamed, folder: Path) -> dict[str, Any]:
    """Write all files of a data folder but dataset.json; returns what that says of them."""
    return {"subset_groups": {}, **prepared.fill(folder)}


def mapped(
    pool: ProcessPoolExecutor, function: Callable[..., Result], items: Iterable[Item], *others: Any
) -> Iterator[Result]:
    """Results in order. Few items are read ahead: `pool.map` would read them all."""
    waiting: deque = deque()
    for item in items:
        waiting.append(pool.submit(function, item, *others))
        if len(waiting) > 3 * pool._max_workers:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
