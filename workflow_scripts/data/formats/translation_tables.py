"""Joint byte-pair encoding of two languages (Sennrich et al. 2016), and Parquet files of the encoded pairs."""

import json
from collections.abc import Callable, Iterable
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
Pairs = list[tuple[str, str]]  # tokenised lines


def learn_byte_pairs(texts: Iterable[str], merges: int, characters: set[str], last: set[str]) -> "Tokenizer":
    """Learn up to `merges` merges of the most frequent pair, which must occur at least twice, like `subword-nmt`.

    characters, last: all characters, and all that end a token; they are the initial pieces.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    # As special tokens, the initial pieces get ids in this order. Otherwise the order would change with each training,
    # and so would the choice between pairs of equal frequency.
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
    tokenizer = Tokenizer(models.BPE(model["vocab"], found, unk_token=UNKNOWN, end_of_word_suffix=END))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "removed")
    return tokenizer


def format_pieces(tokenizer: "Tokenizer") -> list[str]:
    """Return the written form of each piece, by id, as in `subword-nmt`: `@@` follows a piece that ends no token."""
    vocabulary = tokenizer.get_vocab()
    pieces = sorted(vocabulary, key=vocabulary.__getitem__)
    return [p if p == UNKNOWN else p.removesuffix(END) if p.endswith(END) else f"{p}@@" for p in pieces]


def encode_texts(tokenizer: "Tokenizer", texts: list[str]) -> "pyarrow.ListArray":
    """Return the piece ids of each text, as 32-bit integers."""
    import pyarrow

    found = [encoding.ids for encoding in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]
    return pyarrow.array(found, pyarrow.list_(pyarrow.int32()))


def write_tables(
    folder: Path,
    tokenizer: "Tokenizer",
    read_chunks: Callable[[str], Iterable[Pairs]],
    limits: tuple[int, float],
    test_columns: dict[str, list[str]],
) -> dict[str, Any]:
    """Write the Parquet files of train, valid and test, and `vocabulary.json`. Returns the counts for dataset.json.

    read_chunks: returns a split in chunks of pairs of tokenised lines; each becomes a row group. limits: (longest,
    ratio) of `mask_lengths`; pairs of the test set are never removed. test_columns: further columns of the test set.

    Each side has its own vocabulary: the pieces of its training text by decreasing frequency, ties alphabetically. It
    must be known before the first row is written, so the training text is encoded twice.
    """
    pieces = format_pieces(tokenizer)
    counts = {side: np.zeros(len(pieces), np.int64) for side in SIDES}
    for pairs in read_chunks("train"):
        batch = encode_pairs(tokenizer, pairs, limits)
        for side, times in counts.items():
            times += np.bincount(batch[f"{side}_ids"].flatten().to_numpy(), minlength=len(pieces))
    vocabulary, new_ids = {}, {}
    for side, times in counts.items():
        found = (i for i in np.flatnonzero(times).tolist() if pieces[i] != UNKNOWN)
        order = sorted(found, key=lambda i: (-times[i], pieces[i], i))
        vocabulary[side] = SPECIAL_TOKENS + [pieces[i] for i in order]
        new_ids[side] = np.full(len(pieces), UNKNOWN_ID, np.int32)
        new_ids[side][order] = np.arange(len(SPECIAL_TOKENS), len(vocabulary[side]), dtype=np.int32)
    write_json(folder / "vocabulary.json", vocabulary)
    splits = {}
    for split in ("train", "valid", "test"):
        chunks = read_chunks(split)
        batches = (
            (len(pairs), encode_pairs(tokenizer, pairs, None if split == "test" else limits)) for pairs in chunks
        )
        columns = test_columns if split == "test" else {}
        splits[split] = write_pieces(
            folder / f"{split}.parquet", batches, vocabulary, new_ids, split != "train", columns
        )
    return {"splits": splits, "vocabulary": {side: len(tokens) for side, tokens in vocabulary.items()}}


def encode_pairs(tokenizer: "Tokenizer", pairs: Pairs, limits: tuple[int, float] | None) -> "pyarrow.RecordBatch":
    """Return the joint ids of the pairs within the limits, and the text of their targets as `target_words`."""
    import pyarrow

    texts = [list(side) for side in zip(*pairs, strict=True)]
    ids = [encode_texts(tokenizer, side) for side in texts]
    arrays = [*ids, pyarrow.array(texts[1], pyarrow.string())]
    batch = pyarrow.RecordBatch.from_arrays(arrays, ["source_ids", "target_ids", "target_words"])
    if limits:
        lengths = (side.value_lengths().to_numpy() for side in ids)
        batch = batch.filter(pyarrow.array(mask_lengths(*lengths, *limits)))
    return batch


def mask_lengths(source: np.ndarray, target: np.ndarray, longest: int, ratio: float) -> np.ndarray:
    """Return which pairs to keep, [N] bool, by their numbers of pieces [N]; `ratio` is of the longer to the shorter."""
    shorter, longer = np.minimum(source, target), np.maximum(source, target)
    return (shorter > 0) & (longer <= longest) & (longer <= ratio * shorter)


def write_pieces(
    path: Path,
    batches: Iterable[tuple[int, "pyarrow.RecordBatch"]],
    vocabulary: dict[str, list[str]],
    new_ids: dict[str, np.ndarray],
    words: bool,
    columns: dict[str, list[str]],
) -> dict[str, int]:
    """Write (number of pairs, those within the limits) with each side's own ids and pieces. Returns the counts.

    words: whether to write `target_words`, too. columns: further columns of all pairs.
    """
    import pyarrow
    import pyarrow.compute
    import pyarrow.parquet

    text, numbers = pyarrow.string(), pyarrow.list_(pyarrow.int32())
    types = {"source": text, "target": text, "subset": text, "source_ids": numbers, "target_ids": numbers}
    types |= dict.fromkeys([*(["target_words"] if words else []), *columns], text)
    tokens = {side: pyarrow.array(vocabulary[side], text) for side in SIDES}
    counts = {"rows": 0, "left_out": 0, "out_of_vocabulary_tokens": 0, "longest_source": 0, "longest_target": 0}
    with pyarrow.parquet.ParquetWriter(path, pyarrow.schema(types), compression="zstd") as writer:
        for pairs, batch in batches:
            counts["left_out"] += pairs - len(batch)
            if not len(batch):
                continue
            rows = slice(counts["rows"], counts["rows"] + len(batch))
            made = {"subset": [""] * len(batch), "target_words": batch["target_words"]}
            made |= {name: values[rows] for name, values in columns.items()}
            for side in SIDES:
                lengths = batch[f"{side}_ids"].value_lengths().to_numpy()
                ids = new_ids[side][batch[f"{side}_ids"].flatten().to_numpy()]
                offsets = pyarrow.array(np.concatenate([[0], np.cumsum(lengths)]), pyarrow.int32())
                made[f"{side}_ids"] = pyarrow.ListArray.from_arrays(offsets, pyarrow.array(ids))
                pieces = pyarrow.ListArray.from_arrays(offsets, tokens[side].take(pyarrow.array(ids)))
                made[side] = pyarrow.compute.binary_join(pieces, " ")
                counts["out_of_vocabulary_tokens"] += int((ids == UNKNOWN_ID).sum())
                counts[f"longest_{side}"] = max(counts[f"longest_{side}"], int(lengths.max()))
            writer.write_batch(pyarrow.RecordBatch.from_pydict({name: made[name] for name in types}))
            counts["rows"] = rows.stop
    return counts
