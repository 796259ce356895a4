"""Let contenders take turns, so that a slow minute of the machine hits all of them."""

import statistics
import time
from collections.abc import Callable, Mapping

from rich.console import Console
from rich.table import Table


def take_turns(
    contenders: Mapping[str, Callable[[], object]], rounds: int, warm_up: int = 2
) -> dict[str, list[float]]:
    """Seconds of each call, round by round; `warm_up` rounds are not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(warm_up + rounds):
        for name, call in contenders.items():
            start = time.perf_counter()
            call()
            if turn >= warm_up:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def ratio(seconds: dict[str, list[float]], name: str, reference: str) -> float:
    """Median over rounds of the time of `name` divided by that of `reference`."""
    return statistics.median(a / b for a, b in zip(seconds[name], seconds[reference], strict=True))


def show(title: str, seconds: dict[str, list[float]], reference: str) -> None:
    """Print median milliseconds and the ratio to the reference."""
    table = Table("", "median ms", f"time / {reference}", title=title, title_justify="left")
    for name, times in seconds.items():
        table.add_row(
            name, f"{1000 * statistics.median(times):.1f}", f"{ratio(seconds, name, reference):.2f}"
        )
    Console().print(table)
