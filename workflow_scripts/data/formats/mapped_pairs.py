"""Memory-mapped arrays of sentence pairs, for corpora that do not fit into memory.

The arrays of the N pairs in `train.parquet` are files in `train.mapped/`, next to it:

first_ids, second_ids: int32, the concatenated tokens of all first and all second sentences.
first_start, second_start [N] int64, first_length, second_length [N] int32: place and number of tokens of each sentence.
counts: int64, the number of pairs with 0, 1, 2, ... tokens in both sentences together.
by_length, by_second [N] int32: rows sorted by the tokens of both sentences, and of the second; ties in file order.
rank [N] int32: the position of each row in by_second.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    import numpy as np

SIDES = ("first", "second")
ROWS = 100_000  # maximum number of rows in memory


def locate_mapped_folder(data: Path, split: str) -> Path:
    """Return the folder of a split's arrays inside a data folder. It may not exist."""
    return data / f"{split}.mapped"


def write_mapped_pairs(data: Path, split: str, rows: int) -> None:
    """Write the arrays of a split from its Parquet file, which has `rows` rows. Memory does not grow with `rows`."""
    # Not imported at the top, because reading the catalogue imports this module and must be fast.
    import numpy as np
    import pyarrow.parquet as pq

    folder = locate_mapped_folder(data, split)
    folder.mkdir()
    counts, second_counts = np.zeros(1, np.int64), np.zeros(1, np.int64)
    with pq.ParquetFile(data / f"{split}.parquet") as file:
        for side in SIDES:
            tokens = 0
            with (
                open(folder / f"{side}_ids.npy", "wb+") as ids,
                open(folder / f"{side}_start.npy", "wb") as start,
                open(folder / f"{side}_length.npy", "wb") as length,
            ):
                for stream, kind in ((ids, np.int32), (start, np.int64), (length, np.int32)):
                    write_npy_header(stream, kind, rows)
                for batch in file.iter_batches(ROWS, columns=[f"{side}_ids"]):
                    lists = batch.column(0)
                    each = np.diff(np.from_dlpack(lists.offsets)).astype(np.int32)
                    ids.write(np.from_dlpack(lists.flatten()).tobytes())
                    start.write((tokens + np.cumsum(each, dtype=np.int64) - each).tobytes())
                    length.write(each.tobytes())
                    tokens += int(each.sum())
                ids.seek(0)
                write_npy_header(ids, np.int32, tokens)
    for both in zip(*(read_by_parts(folder / f"{side}_length.npy") for side in SIDES), strict=True):
        counts, second_counts = add_counts(counts, sum(both)), add_counts(second_counts, both[1])
    np.save(folder / "counts.npy", counts)
    with ExitStack() as opened:
        by_length, by_second, rank = (
            opened.enter_context(open(folder / f"{name}.npy", "wb")) for name in ("by_length", "by_second", "rank")
        )
        for stream in (by_length, by_second, rank):
            header = write_npy_header(stream, np.int32, rows)
        places, second_places = (found.cumsum() - found for found in (counts, second_counts))
        row = 0
        for both in zip(*(read_by_parts(folder / f"{side}_length.npy") for side in SIDES), strict=True):
            scatter_rows(by_length, header, sum(both), row, places)
            rank.write(scatter_rows(by_second, header, both[1], row, second_places).astype(np.int32).tobytes())
            row += len(both[1])


def write_npy_header(stream: BinaryIO, kind: type, count: int) -> int:
    """Write the header of an .npy file of `count` numbers. Returns its bytes, which are the same for every count."""
    import numpy as np

    header = {"descr": np.dtype(kind).str, "fortran_order": False, "shape": (count,)}
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.tell()


def read_by_parts(path: Path) -> Iterator["np.ndarray"]:
    """Yield the numbers of an .npy file of int32, ROWS at a time."""
    import numpy as np

    with open(path, "rb") as stream:
        np.lib.format.read_magic(stream)
        np.lib.format.read_array_header_1_0(stream)
        while len(part := np.fromfile(stream, np.int32, ROWS)):
            yield part


def add_counts(counts: "np.ndarray", values: "np.ndarray") -> "np.ndarray":
    """Add the occurrences of 0, 1, 2, ... in `values` to `counts`, extending it if needed. Returns the sum."""
    import numpy as np

    found = np.bincount(values, minlength=len(counts))
    found[: len(counts)] += counts
    return found


def scatter_rows(stream: BinaryIO, header: int, values: "np.ndarray", row: int, places: "np.ndarray") -> "np.ndarray":
    """Write rows `row`, `row` + 1, ... with `values` [n] into a file of all rows sorted by value, after `header` bytes.

    `places`, the next free position of each value, is updated. Returns the positions [n] of the rows.
    """
    import numpy as np

    order = np.argsort(values, kind="stable")
    sizes = np.bincount(values, minlength=len(places))
    ends = sizes.cumsum()
    for value in np.flatnonzero(sizes):
        stream.seek(header + 4 * int(places[value]))
        stream.write((row + order[ends[value] - sizes[value] : ends[value]]).astype(np.int32).tobytes())
    found = np.empty(len(values), np.int64)
    found[order] = np.repeat(places - (ends - sizes), sizes) + np.arange(len(values))
    places += sizes
    return found
