"""A parallel map over more items than fit into memory."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

Item, Result = TypeVar("Item"), TypeVar("Result")


def map_in_order(
    pool: ProcessPoolExecutor, function: Callable[..., Result], items: Iterable[Item], *others: Any
) -> Iterator[Result]:
    """Yield results in order, reading only a few items ahead; `pool.map` would read them all at once."""
    waiting: deque = deque()
    for item in items:
        waiting.append(pool.submit(function, item, *others))
        if len(waiting) > 3 * pool._max_workers:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
