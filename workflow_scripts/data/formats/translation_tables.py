"""Joint byte-pair encoding of two languages (Sennrich et al. 2016), and Parquet files of the encoded pairs."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workflow_scripts.common.files import write_json
from workflow_scripts.data.prepared import SPECIAL_TOKENS, UNKNOWN_ID

if TYPE_CHECKING:
    import pyarrow
    from tokenizers import Tokenizer

SIDES = ("source", "target")
END = "</w>"  # marks a piece that ends a token
UNKNOWN = "<unk>"
Chunks = Iterable[list[tuple[str, str]]]


def learn_byte_pairs(
    texts: Iterable[str], merges: int, characters: set[str], last: set[str]
) -> "Tokenizer":
    """Learn up to `merges` merges of the most frequent pair, which must occur at least twice, like `subword-nmt`.

    characters, last: all characters, and all that end a token; they are the initial pieces.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    # As special tokens, the initial pieces get ids in this order. Otherwise the order would change
    # with each training, and so would the choice between pairs of equal frequency.
    ends = sorted(character + END for character in last)
    trainer = trainers.BpeTrainer(
        vocab_size=1 + len(characters) + len(ends) + merges,
        min_frequency=2,
        special_tokens=[UNKNOWN, *ends],
        initial_alphabet=sorted(characters),
        end_of_word_suffix=END,
        show_progress=False,
    )
    learner = Tokenizer(models.BPE(unk_token=UNKNOWN, end_of_word_suffix=END))
    learner.pre_tokenizer = pre_tokenizers.Split(" ", "removed")
    learner.train_from_iterator(texts, trainer)
    model = json.loads(learner.to_str())["model"]
    found = [tuple(pair) for pair in model["merges"]]
    tokenizer = Tokenizer(
        models.BPE(model["vocab"], found, unk_token=UNKNOWN, end_of_word_suffix=END)
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "removed")
    return tokenizer


def format_pieces(tokenizer: "Tokenizer") -> list[str]:
    """Return the written form of each piece, by id, as in `subword-nmt`: `@@` follows a piece that ends no token."""
    vocabulary = tokenizer.get_vocab()
    pieces = sorted(vocabulary, key=vocabulary.__getitem__)
    return [
        p if p == UNKNOWN else p.removesuffix(END) if p.endswith(END) else f"{p}@@" for p in pieces
    ]


def encode_texts(tokenizer: "Tokenizer", texts: list[str]) -> "pyarrow.ListArray":
    """Return the piece ids of each text, as 32-bit integers."""
    import pyarrow

    found = [
        encoding.ids for encoding in tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    ]
    return pyarrow.array(found, pyarrow.list_(pyarrow.int32()))


def write_tables(
    folder: Path,
    scratch: Path,
    tokenizer: "Tokenizer",
    texts: dict[str, Chunks],
    limits: tuple[int, float],
    test_columns: dict[str, list[str]],
) -> dict[str, Any]:
    """Write `<split>.parquet` for each split of `texts` and `vocabulary.json`.

    Returns the counts for dataset.json.

    texts: split -> chunks of pairs of tokenised lines; each chunk becomes a row group. limits:
    (longest, ratio) of `mask_lengths`; pairs of the test set are never removed. test_columns:
    further columns of the test set.

    Each side has its own vocabulary: the pieces of its training text by decreasing frequency, ties
    alphabetically. It is known only after all text is encoded, so the ids of the joint encoding are
    first written to files in `scratch`.
    """
    joint = {split: scratch / f"{split}.arrows" for split in texts}
    dropped = {
        split: encode_pairs(
            tokenizer, chunks, joint[split], None if split == "test" else limits, split != "train"
        )
        for split, chunks in texts.items()
    }
    pieces = format_pieces(tokenizer)
    vocabulary, new_ids = {}, {}
    for side in SIDES:
        counts = np.zeros(len(pieces), np.int64)
        for batch in iterate_batches(joint["train"]):
            counts += np.bincount(batch[f"{side}_ids"].flatten().to_numpy(), minlength=len(pieces))
        found = (i for i in np.flatnonzero(counts).tolist() if pieces[i] != UNKNOWN)
        order = sorted(found, key=lambda i: (-counts[i], pieces[i], i))
        vocabulary[side] = SPECIAL_TOKENS + [pieces[i] for i in order]
        new_ids[side] = np.full(len(pieces), UNKNOWN_ID, np.int32)
        new_ids[side][order] = np.arange(len(SPECIAL_TOKENS), len(vocabulary[side]), dtype=np.int32)
    write_json(folder / "vocabulary.json", vocabulary)
    splits = {}
    for split, path in joint.items():
        columns = test_columns if split == "test" else {}
        splits[split] = remap_ids(path, folder / f"{split}.parquet", new_ids, vocabulary, columns)
        splits[split]["left_out"] = dropped[split]
        path.unlink()
    return {
        "splits": splits,
        "vocabulary": {side: len(tokens) for side, tokens in vocabulary.items()},
    }


def encode_pairs(
    tokenizer: "Tokenizer",
    chunks: Chunks,
    path: Path,
    limits: tuple[int, float] | None,
    words: bool,
) -> int:
    """Write joint ids to an Arrow file, and, if `words`, `target_words`.

    Returns the number of pairs left out.
    """
    import pyarrow

    ids = pyarrow.list_(pyarrow.int32())
    columns = {f"{side}_ids": ids for side in SIDES} | (
        {"target_words": pyarrow.string()} if words else {}
    )
    dropped = 0
    with pyarrow.ipc.new_stream(path, pyarrow.schema(columns)) as writer:
        for chunk in chunks:
            texts = [list(side) for side in zip(*chunk, strict=True)]
            arrays = [encode_texts(tokenizer, side) for side in texts]
            lengths = [array.value_lengths().to_numpy() for array in arrays]
            arrays += [pyarrow.array(texts[1], pyarrow.string())] if words else []
            batch = pyarrow.RecordBatch.from_arrays(arrays, list(columns))
            if limits:
                kept = mask_lengths(*lengths, *limits)
                batch, dropped = batch.filter(pyarrow.array(kept)), dropped + int((~kept).sum())
            writer.write_batch(batch)
    return dropped


def mask_lengths(source: np.ndarray, target: np.ndarray, longest: int, ratio: float) -> np.ndarray:
    """Return which pairs to keep, [N] bool, by their numbers of pieces [N]; `ratio` is of the longer to the shorter."""
    shorter, longer = np.minimum(source, target), np.maximum(source, target)
    return (shorter > 0) & (longer <= longest) & (longer <= ratio * shorter)


def iterate_batches(path: Path) -> Iterator["pyarrow.RecordBatch"]:
    """Yield the non-empty batches of a file of `encode_pairs`."""
    import pyarrow

    with pyarrow.OSFile(str(path)) as file, pyarrow.ipc.open_stream(file) as reader:
        yield from (batch for batch in reader if len(batch))


def remap_ids(
    path: Path,
    out: Path,
    new_ids: dict[str, np.ndarray],
    vocabulary: dict[str, list[str]],
    columns: dict[str, list[str]],
) -> dict[str, int]:
    """Write a split with each side's own ids, its text as pieces, and `columns`.

    Returns the split's counts.
    """
    import pyarrow
    import pyarrow.compute
    import pyarrow.parquet

    text, numbers = pyarrow.string(), pyarrow.list_(pyarrow.int32())
    types = {
        "source": text,
        "target": text,
        "subset": text,
        "source_ids": numbers,
        "target_ids": numbers,
    }
    with pyarrow.ipc.open_stream(pyarrow.OSFile(str(path))) as reader:
        kept = [name for name in reader.schema.names if name not in types]
    types |= dict.fromkeys([*kept, *columns], text)
    tokens = {side: pyarrow.array(vocabulary[side], text) for side in SIDES}
    counts = {"rows": 0, "out_of_vocabulary_tokens": 0, "longest_source": 0, "longest_target": 0}
    with pyarrow.parquet.ParquetWriter(out, pyarrow.schema(types), compression="zstd") as writer:
        for batch in iterate_batches(path):
            made = {name: batch[name] for name in kept}
            made["subset"] = pyarrow.array([""] * len(batch), text)
            for name, values in columns.items():
                made[name] = pyarrow.array(
                    values[counts["rows"] : counts["rows"] + len(batch)], text
                )
            for side in SIDES:
                lengths = batch[f"{side}_ids"].value_lengths().to_numpy()
                ids = new_ids[side][batch[f"{side}_ids"].flatten().to_numpy()]
                offsets = pyarrow.array(np.concatenate([[0], np.cumsum(lengths)]), pyarrow.int32())
                made[f"{side}_ids"] = pyarrow.ListArray.from_arrays(offsets, pyarrow.array(ids))
                pieces = pyarrow.ListArray.from_arrays(
                    offsets, tokens[side].take(pyarrow.array(ids))
                )
                made[side] = pyarrow.compute.binary_join(pieces, " ")
                counts["out_of_vocabulary_tokens"] += int((ids == UNKNOWN_ID).sum())
                counts[f"longest_{side}"] = max(counts[f"longest_{side}"], int(lengths.max()))
            writer.write_batch(
                pyarrow.RecordBatch.from_pydict({name: made[name] for name in types})
            )
            counts["rows"] += len(batch)
    return counts
