"""What data sets share that are too large for memory: their module writes the files itself."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from workflow_scripts.data.manifest import protocol_of, write_manifest
from workflow_scripts.errors import UserError
from workflow_scripts.files import replacing

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


def write(prepared: Streamed, spec: dict[str, Any], source_digests: dict[str, str], out: Path) -> None:
    """Write the data folder of a task at once. Raises UserError when a split is empty, or when the spec does not say
    that the data are made up.
    """
    task, protocol = spec["task"], protocol_of(spec, prepared.protocol)
    with replacing(out) as folder:
        folder.mkdir()
        content = {
            "task": task,
            "protocol": protocol,
            "notes": prepared.notes,
            "subset_groups": {},
            **prepared.fill(folder),
        }
        for name, counts in content["splits"].items():
            if not counts["rows"]:
                raise UserError(f"task {task}: split {name} is empty; its sources or options leave too little")
        write_manifest(folder, content, spec, source_digests)


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
