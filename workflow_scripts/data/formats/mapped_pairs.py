"""Memory-mapped arrays of sentence pairs, for corpora that do not fit into memory.

The arrays of the N pairs in `train.parquet` are files in `train.mapped/`, next to it:

first_ids, second_ids: int32, the concatenated tokens of all first and all second sentences.
first_start, second_start [N] int64, first_length, second_length [N] int32: place and number of tokens of each sentence.
counts: int64, the number of pairs with 0, 1, 2, ... tokens in both sentences together.
by_length, by_second [N] int32: rows sorted by the tokens of both sentences, and of the second; ties in file order.
rank [N] int32: the position of each row in by_second.
"""

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
    first, second = (np.load(folder / f"{side}_length.npy", mmap_mode="r") for side in SIDES)
    np.save(folder / "counts.npy", write_order(folder, "by_length", (first, second)))
    write_order(folder, "by_second", (second,), "rank")


def write_npy_header(stream: BinaryIO, kind: type, count: int) -> None:
    """Write the header of an .npy file of `count` numbers. It has the same length for every count."""
    import numpy as np

    header = {"descr": np.dtype(kind).str, "fortran_order": False, "shape": (count,)}
    np.lib.format.write_array_header_1_0(stream, header)


def write_order(folder: Path, name: str, lengths: tuple["np.ndarray", ...], rank: str = "") -> "np.ndarray":
    """Write the rows sorted by their summed lengths [N], ties in file order, and with `rank` each row's position.

    This is a counting sort, ROWS at a time. Returns the number of rows with the sums 0, 1, 2, ...
    """
    import numpy as np

    rows = len(lengths[0])
    parts = [slice(row, row + ROWS) for row in range(0, rows, ROWS)]
    longest = max(int(sum(length[part] for length in lengths).max()) for part in parts)
    counts = np.zeros(longest + 1, np.int64)
    for part in parts:
        counts += np.bincount(sum(length[part] for length in lengths), minlength=len(counts))
    free = counts.cumsum() - counts  # the next free position of each sum
    order, ranks = (
        np.lib.format.open_memmap(folder / f"{file}.npy", "w+", np.int32, (rows,)) if file else None
        for file in (name, rank)
    )
    for part in parts:
        sums = sum(length[part] for length in lengths)
        by_sum = np.argsort(sums, kind="stable")
        sizes = np.bincount(sums, minlength=len(counts))
        places = np.empty(len(sums), np.int64)
        places[by_sum] = np.repeat(free - (sizes.cumsum() - sizes), sizes) + np.arange(len(sums))
        order[places] = np.arange(part.start, part.start + len(sums))
        if ranks is not None:
            ranks[part] = places
        free += sizes
    return counts
