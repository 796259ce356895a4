"""Joint byte-pair encoding of two languages (Sennrich et al. 2016), and files of encoded pairs.

The files are Parquet.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from workflow_scripts.common.files import write_json
from workflow_scripts.common.result_folders import DataFolder
from workflow_scripts.data.token_ids import SPECIAL_TOKENS, UNK

if TYPE_CHECKING:
    import pyarrow
    from tokenizers import Tokenizer

SIDES = ("source", "target")
PAIR_COLUMNS = (*SIDES, "subset", "source_ids", "target_ids")  # of a prepared split
END = "</w>"  # marks a piece that ends a token
UNKNOWN = "<unk>"
Chunks = Iterable[list[tuple[str, str]]]


@dataclass(frozen=True)
class Limits:
    """Lengths of the pairs that are kept, in pieces; see `mask_lengths`.

    longest: of a side. ratio: at most, of the longer side to the shorter.
    """

    longest: int
    ratio: float


def learn_byte_pairs(
    texts: Iterable[str], merges: int, characters: set[str], last_characters: set[str]
) -> "Tokenizer":
    """Learn up to `merges` merges of the most frequent pair, like `subword-nmt`.

    A pair must occur at least twice. characters, last_characters: all characters, and all that end
    a token; they are the initial pieces.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    # As special tokens, the initial pieces get ids in this order. Otherwise the order would change
    # with each training, and so would the choice between pairs of equal frequency.
    ends = sorted(character + END for character in last_characters)
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
    learnt = json.loads(learner.to_str())["model"]
    pairs = [tuple(pair) for pair in learnt["merges"]]
    model = models.BPE(learnt["vocab"], pairs, unk_token=UNKNOWN, end_of_word_suffix=END)
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "removed")
    return tokenizer


def format_pieces(tokenizer: "Tokenizer") -> list[str]:
    """Return the written form of each piece, by id, as in `subword-nmt`.

    `@@` follows a piece that ends no token.
    """
    vocabulary = tokenizer.get_vocab()
    forms = []
    for piece in sorted(vocabulary, key=vocabulary.__getitem__):
        if piece == UNKNOWN:
            forms.append(piece)
        elif piece.endswith(END):
            forms.append(piece.removesuffix(END))
        else:
            forms.append(f"{piece}@@")
    return forms


def encode_texts(tokenizer: "Tokenizer", texts: list[str]) -> "pyarrow.ListArray":
    """Return the piece ids of each text, as 32-bit integers."""
    import pyarrow

    encodings = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    ids = [encoding.ids for encoding in encodings]
    return pyarrow.array(ids, pyarrow.list_(pyarrow.int32()))


def write_tables(
    folder: Path,
    scratch: Path,
    tokenizer: "Tokenizer",
    texts: dict[str, Chunks],
    limits: Limits,
    test_columns: dict[str, list[str]],
) -> dict[str, Any]:
    """Write `<split>.parquet` for each split of `texts` and `vocabulary.json`.

    Returns the counts for dataset.json.

    texts: split -> chunks of pairs of tokenised lines; each chunk becomes a row group. limits:
    pairs of the test set are never removed. test_columns: further columns of the test set, column
    -> a text for each pair.

    Each side has its own vocabulary: the pieces of its training text by decreasing frequency, ties
    alphabetically. It is known only after all text is encoded, so the ids of the joint encoding are
    first written to files in `scratch`. Each of them is deleted after its split is written.
    """
    joint_files = {}
    left_out = {}
    for split, chunks in texts.items():
        joint_files[split] = scratch / f"{split}.arrows"
        left_out[split] = encode_pairs(
            tokenizer,
            chunks,
            joint_files[split],
            limits=None if split == "test" else limits,
            with_words=split != "train",
        )
    pieces = format_pieces(tokenizer)
    vocabularies = {}
    for side in SIDES:
        vocabularies[side] = SideVocabulary.make(joint_files["train"], side, pieces)
    vocabulary = {side: vocabularies[side].pieces for side in SIDES}
    write_json(DataFolder(folder).vocabulary, vocabulary)
    splits = {}
    for split, path in joint_files.items():
        columns = test_columns if split == "test" else {}
        splits[split] = remap_ids(path, DataFolder(folder).split(split), vocabularies, columns)
        splits[split]["left_out"] = left_out[split]
        path.unlink()
    return {
        "splits": splits,
        "vocabulary": {side: len(vocabulary[side]) for side in SIDES},
    }


@dataclass(frozen=True)
class SideVocabulary:
    """The vocabulary of one side: its V pieces by id, of the J pieces of both sides together.

    new_ids [J]: the id of each joint id, UNK for pieces that the side has not in training.
    """

    pieces: list[str]
    new_ids: np.ndarray

    @classmethod
    def make(cls, training: Path, side: str, joint_pieces: list[str]) -> "SideVocabulary":
        """Make it of the training text, a file of `encode_pairs`. joint_pieces: by joint id."""
        joint_ids = rank_pieces(training, side, joint_pieces)
        pieces = SPECIAL_TOKENS + [joint_pieces[joint_id] for joint_id in joint_ids]
        new_ids = np.full(len(joint_pieces), UNK, np.int32)
        new_ids[joint_ids] = np.arange(len(SPECIAL_TOKENS), len(pieces), dtype=np.int32)
        return cls(pieces, new_ids)


def rank_pieces(path: Path, side: str, pieces: list[str]) -> list[int]:
    """Return the ids of the pieces that occur on one side of a file of joint ids.

    path: a file that `encode_pairs` has written. pieces: the written form of each id. The piece of
    unknown characters is left out. The ids are sorted by decreasing frequency, ties alphabetically
    and then by id, because two pieces can have one written form.
    """
    counts = np.zeros(len(pieces), np.int64)
    for batch in iterate_batches(path):
        ids_of_batch = batch[f"{side}_ids"].flatten().to_numpy()
        counts += np.bincount(ids_of_batch, minlength=len(pieces))
    occurring_ids = []
    for piece_id in np.flatnonzero(counts).tolist():
        if pieces[piece_id] != UNKNOWN:
            occurring_ids.append(piece_id)

    def rank(piece_id: int) -> tuple[int, str, int]:
        return -counts[piece_id], pieces[piece_id], piece_id

    return sorted(occurring_ids, key=rank)


def encode_pairs(
    tokenizer: "Tokenizer",
    chunks: Chunks,
    path: Path,
    limits: Limits | None,
    with_words: bool,
) -> int:
    """Write an Arrow stream of pairs: `source_ids` and `target_ids`, joint ids of both languages.

    limits: the lengths of the pairs that are kept; None keeps all. with_words: whether to
    write the column `target_words` too, the tokenised text. Returns the number of pairs left out.
    """
    import pyarrow

    ids = pyarrow.list_(pyarrow.int32())
    columns = {"source_ids": ids, "target_ids": ids}
    if with_words:
        columns["target_words"] = pyarrow.string()
    left_out = 0
    with pyarrow.ipc.new_stream(path, pyarrow.schema(columns)) as writer:
        for chunk in chunks:
            source_texts = [source for source, _target in chunk]
            target_texts = [target for _source, target in chunk]
            source_ids = encode_texts(tokenizer, source_texts)
            target_ids = encode_texts(tokenizer, target_texts)
            arrays = [source_ids, target_ids]
            if with_words:
                arrays.append(pyarrow.array(target_texts, pyarrow.string()))
            batch = pyarrow.RecordBatch.from_arrays(arrays, list(columns))
            if limits:
                source_lengths = source_ids.value_lengths().to_numpy()
                target_lengths = target_ids.value_lengths().to_numpy()
                is_kept = mask_lengths(source_lengths, target_lengths, limits)
                batch = batch.filter(pyarrow.array(is_kept))
                left_out += int((~is_kept).sum())
            writer.write_batch(batch)
    return left_out


def mask_lengths(source: np.ndarray, target: np.ndarray, limits: Limits) -> np.ndarray:
    """Return which pairs to keep, [N] bool, by the numbers of pieces [N] of their sides.

    A pair with an empty side is not kept.
    """
    shorter = np.minimum(source, target)
    longer = np.maximum(source, target)
    is_short = longer <= limits.longest
    is_of_similar_length = longer <= limits.ratio * shorter
    return (shorter > 0) & is_short & is_of_similar_length


def iterate_batches(path: Path) -> Iterator["pyarrow.RecordBatch"]:
    """Yield the non-empty batches of a file of `encode_pairs`."""
    import pyarrow

    with pyarrow.OSFile(str(path)) as file, pyarrow.ipc.open_stream(file) as reader:
        yield from (batch for batch in reader if len(batch))


def remap_ids(
    path: Path,
    out: Path,
    vocabularies: dict[str, SideVocabulary],
    columns: dict[str, list[str]],
) -> dict[str, int]:
    """Write a split as Parquet from a file of `encode_pairs`, with each side's own ids.

    The columns are those of the file with new ids, the text of each side as pieces, an empty
    `subset`, and `columns`. vocabularies: by side. columns: texts of all rows of the split, for a
    split of which no pair was left out. Returns the counts of dataset.json: rows, pieces that are
    UNK on either side, and the pieces of the longest source and target.
    """
    import pyarrow
    import pyarrow.parquet

    text = pyarrow.string()
    with pyarrow.ipc.open_stream(pyarrow.OSFile(str(path))) as reader:
        copied_columns = [name for name in reader.schema.names if name not in PAIR_COLUMNS]
    types = dict.fromkeys((*PAIR_COLUMNS, *copied_columns, *columns), text)
    for side in SIDES:
        types[f"{side}_ids"] = pyarrow.list_(pyarrow.int32())
    pieces_by_id = {side: pyarrow.array(vocabularies[side].pieces, text) for side in SIDES}
    counts = {"rows": 0, "out_of_vocabulary_tokens": 0, "longest_source": 0, "longest_target": 0}
    with pyarrow.parquet.ParquetWriter(out, pyarrow.schema(types), compression="zstd") as writer:
        for batch in iterate_batches(path):
            start = counts["rows"]
            end = start + len(batch)
            arrays = {name: batch[name] for name in copied_columns}
            arrays["subset"] = pyarrow.array([""] * len(batch), text)
            for name, values in columns.items():
                arrays[name] = pyarrow.array(values[start:end], text)
            for side in SIDES:
                joint_ids = batch[f"{side}_ids"]
                remapped = remap_side(joint_ids, vocabularies[side].new_ids, pieces_by_id[side])
                arrays[f"{side}_ids"] = remapped.ids
                arrays[side] = remapped.texts
                longest = int(joint_ids.value_lengths().to_numpy().max())
                counts["out_of_vocabulary_tokens"] += remapped.n_unknown
                counts[f"longest_{side}"] = max(counts[f"longest_{side}"], longest)
            in_order = {name: arrays[name] for name in types}
            writer.write_batch(pyarrow.RecordBatch.from_pydict(in_order))
            counts["rows"] = end
    return counts


class RemappedSide(NamedTuple):
    """One side of N pairs: its ids, lists [N]; its pieces joined by spaces, texts [N].

    n_unknown: how many of all its pieces are UNK.
    """

    ids: "pyarrow.ListArray"
    texts: "pyarrow.StringArray"
    n_unknown: int


def remap_side(
    joint_ids: "pyarrow.ListArray", new_ids: np.ndarray, pieces_by_id: "pyarrow.StringArray"
) -> RemappedSide:
    """Replace joint ids, lists [N], by a side's own ids, and look up its pieces."""
    import pyarrow
    import pyarrow.compute

    ends = np.cumsum(joint_ids.value_lengths().to_numpy())
    offsets = pyarrow.array(np.concatenate([[0], ends]), pyarrow.int32())
    flat_ids = new_ids[joint_ids.flatten().to_numpy()]
    n_unknown = int((flat_ids == UNK).sum())
    flat_array = pyarrow.array(flat_ids)
    pieces = pyarrow.ListArray.from_arrays(offsets, pieces_by_id.take(flat_array))
    texts = pyarrow.compute.call_function("binary_join", [pieces, " "])
    return RemappedSide(pyarrow.ListArray.from_arrays(offsets, flat_array), texts, n_unknown)
