"""Write and read a task's data folder: one Parquet file per split, dataset.json, vocabularies and further files.

Every `prepare` of `datasets/` returns one of the three dataset classes here. pyarrow is imported in
functions: it takes half a second, and reading the catalogue imports this module.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import (
    MissingFileError,
    hash_file,
    hash_files,
    read_json,
    write_atomically,
    write_json,
)
from workflow_scripts.data.data_spec import DataSpec
from workflow_scripts.data.splits import Example
from workflow_scripts.evaluation.protocol import find_worst_protocol

if TYPE_CHECKING:
    import pyarrow

SPECIAL_TOKENS = ["<pad>", "<s>", "</s>", "<unk>"]
UNKNOWN_ID = SPECIAL_TOKENS.index("<unk>")
LISTS = ("ids", "groups", "sememes")  # how the names of columns with lists of numbers end


@dataclass
class Seq2SeqDataset:
    """Pairs of a source and a target, split into tokens at spaces.

    subset_groups: group name -> its subsets, for scores over groups of subsets.
    columns: split -> column -> one text per row, in addition to the fields of Example.
    files: name -> JSON content.
    whole_targets: splits whose targets are not split into tokens; their `target_ids` are empty.
    described: further content of dataset.json.
    """

    splits: dict[str, list[Example]]
    notes: list[str]
    protocol: str = "paper"
    subset_groups: dict[str, list[str]] = field(default_factory=dict)
    columns: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    files: dict[str, Any] = field(default_factory=dict)
    whole_targets: list[str] = field(default_factory=list)
    described: dict[str, Any] = field(default_factory=dict)

    def write(self, folder: Path) -> dict[str, Any]:
        """Write one Parquet file per split, `vocabulary.json` and `files`.

        Return the content of dataset.json.
        """
        train = self.splits["train"]
        words = {
            side: build_vocabulary([getattr(example, side) for example in train])
            for side in ("source", "target")
        }
        ids = {side: {token: i for i, token in enumerate(tokens)} for side, tokens in words.items()}
        summary = {}
        for name, columns in collect_columns(self.splits, Example._fields).items():
            for side in ("source", "target"):
                columns[f"{side}_ids"] = [
                    [ids[side].get(t, UNKNOWN_ID) for t in s.split(" ")] for s in columns[side]
                ]
            if name in self.whole_targets:
                columns["target_ids"] = [[] for _ in columns["target"]]
            write_split(folder, name, columns | self.columns.get(name, {}))
            numbered = columns["source_ids"] + columns["target_ids"]
            summary[name] = {
                "rows": len(columns["source"]),
                "distinct": len(set(zip(columns["source"], columns["target"], strict=True))),
                "out_of_vocabulary_tokens": sum(row.count(UNKNOWN_ID) for row in numbered),
                "longest_source": max(map(len, columns["source_ids"]), default=0),
                "longest_target": max(map(len, columns["target_ids"]), default=0),
            }
        for name, made in {"vocabulary.json": words, **self.files}.items():
            write_json(folder / name, made)
        return {
            "splits": summary,
            "subset_groups": self.subset_groups,
            "vocabulary": {side: len(tokens) for side, tokens in words.items()},
            **self.described,
        }


class PromptItem(NamedTuple):
    """A row of prompt tasks: a stable key, and the definition or sentence, without a template, with its label."""

    item: str
    content: str
    label: str
    subset: str = ""


@dataclass
class TableDataset:
    """Tables for all kinds of tasks except seq2seq.

    tables: split -> column -> values. prompt tasks have the fields of PromptItem;
        language_modelling has `source` and `ids` (tokens of one document, without start and end
        tokens); sentence_prediction has the fields of `datasets.sentences.Sentence`. `ids` are
        lists of 32-bit integers; all other values are texts or floats.
    extra_files: name -> text. described: further content of dataset.json.
    """

    tables: dict[str, dict[str, list]]
    notes: list[str]
    protocol: str = "paper"
    extra_files: dict[str, str] = field(default_factory=dict)
    described: dict[str, Any] = field(default_factory=dict)

    def write(self, folder: Path) -> dict[str, Any]:
        """Write one Parquet file per split and `extra_files`.

        Return the content of dataset.json.
        """
        summary = {}
        for name, columns in self.tables.items():
            write_split(folder, name, columns)
            # `item` is unique for each row, so distinct rows are counted without it.
            values = [
                map(tuple, v) if column == "ids" else v
                for column, v in columns.items()
                if column != "item"
            ]
            rows = list(zip(*values, strict=True))
            summary[name] = {"rows": len(rows), "distinct": len(set(rows))}
        for name, content in self.extra_files.items():
            (folder / name).write_text(content, encoding="utf-8")
        return {"splits": summary, **self.described}


@dataclass
class StreamedDataset:
    """Data that do not fit into memory. `fill` writes all files that training reads into a folder.

    It returns content of dataset.json, including `splits`: name -> counts, one of them `rows`.
    """

    fill: Callable[[Path], dict[str, Any]]
    notes: list[str]
    protocol: str = "paper"

    def write(self, folder: Path) -> dict[str, Any]:
        """Write all files except dataset.json. Return the content of dataset.json."""
        return {"subset_groups": {}, **self.fill(folder)}


Dataset = Seq2SeqDataset | TableDataset | StreamedDataset


def prepare_data(module: ModuleType, options: BaseModel, sources: dict[str, Path]) -> Dataset:
    """Prepare the data of a module of `datasets/` by its Options.

    Raises UserError for missing or malformed sources.
    """
    made = module.prepare(options, sources)
    return (
        replace(made, protocol="stand_in")
        if getattr(options, "origin", None) == "stand_in"
        else made
    )


def collect_columns(
    splits: Mapping[str, Sequence], fields: Sequence[str]
) -> dict[str, dict[str, list]]:
    """Turn rows with these fields into columns: split -> field -> values."""
    return {
        split: {name: [getattr(row, name) for row in rows] for name in fields}
        for split, rows in splits.items()
    }


def write_split(folder: Path, split: str, columns: dict[str, list]) -> None:
    """Write the Parquet file of a split, with columns of texts, floats, or, by LISTS, lists of 32-bit integers."""
    import pyarrow.parquet

    numbers, text, score = pyarrow.list_(pyarrow.int32()), pyarrow.string(), pyarrow.float64()
    types = {
        name: numbers
        if name.endswith(LISTS)
        else score
        if values and isinstance(values[0], float)
        else text
        for name, values in columns.items()
    }
    table = pyarrow.Table.from_pydict(columns, schema=pyarrow.schema(types))
    pyarrow.parquet.write_table(table, folder / f"{split}.parquet", compression="zstd")


def build_vocabulary(sentences: list[str]) -> list[str]:
    """Return the tokens by id: special tokens, then all tokens by decreasing frequency, ties alphabetically."""
    counts = Counter(token for sentence in sentences for token in sentence.split(" "))
    return SPECIAL_TOKENS + sorted(counts, key=lambda token: (-counts[token], token))


def write_data(made: Dataset, spec: DataSpec, out: Path) -> None:
    """Write the data folder of a task atomically, with the worse protocol of spec and data.

    Equal input: equal bytes.

    Raises UserError for an empty split, or for stand-in data if the spec's protocol is not
    `stand_in`.
    """
    task = spec.task
    if made.protocol == "stand_in" and spec.protocol != "stand_in":
        raise UserError(
            f"task {task}: stand-in data, but the protocol is {spec.protocol}; set it to stand_in"
        )
    notes = (
        ["stand-in data: generated, in the format of the real data"]
        if made.protocol == "stand_in"
        else []
    )
    with write_atomically(out) as folder:
        folder.mkdir()
        content = made.write(folder)
        for name, counts in content["splits"].items():
            if not counts["rows"]:
                raise UserError(
                    f"task {task}: split {name} is empty; its sources or options leave too little"
                )
        protocol = find_worst_protocol(spec.protocol, made.protocol)
        content |= {"task": task, "protocol": protocol, "notes": notes + made.notes}
        write_json(
            folder / "dataset.json",
            {**content, "spec": spec.to_json(), "files": hash_files(folder)},
        )


def read_vocabularies(folder: Path) -> dict[str, list[str]]:
    """Read vocabulary.json of a data folder: side (`source`, `target`) -> tokens by id.

    Raises UserError if invalid.
    """
    content = read_json(folder / "vocabulary.json")
    if not isinstance(content, dict) or content.keys() != {"source", "target"}:
        raise UserError(
            f"{folder / 'vocabulary.json'} is not a vocabulary; delete {folder} and prepare it again"
        )
    for side, tokens in content.items():
        if not (
            isinstance(tokens, list) and tokens and all(isinstance(token, str) for token in tokens)
        ):
            raise UserError(
                f"{folder / 'vocabulary.json'}: key '{side}' is no list of texts; make {folder} again"
            )
    return content


def read_table(folder: Path, split: str, columns: list[str] | None = None) -> "pyarrow.Table":
    """Read columns of a split (default: all).

    Raises UserError if its file is missing, broken, empty or lacks one.
    """
    import pyarrow
    import pyarrow.parquet as pq

    path = folder / f"{split}.parquet"
    try:
        with pq.ParquetFile(path) as file:
            table, rows = file.read(columns=columns), file.metadata.num_rows
        table.validate(full=True)  # texts must be UTF-8
        if table.num_rows != rows:  # in a damaged file a column can be shorter than the others
            raise ValueError(f"{table.num_rows} rows of {rows}")
    except FileNotFoundError as error:
        raise UserError(f"{path} does not exist; delete {folder} and prepare it again") from error
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(
            f"{path} cannot be read ({reason}); delete {folder} and prepare it again"
        ) from error
    absent = sorted(set(columns or ()) - set(table.column_names))
    if absent:
        raise UserError(f"{path} has no column {absent[0]}; delete {folder} and prepare it again")
    if not table.num_rows:
        raise UserError(f"{path} has no rows; delete {folder} and prepare it again")
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind, inner = (
            column.type,
            column.type.value_type if pyarrow.types.is_list(column.type) else None,
        )
        known = pyarrow.types.is_integer(inner) if inner else str(kind) in ("string", "double")
        if name.endswith(LISTS) != bool(inner) or not known:
            raise UserError(
                f"{path}: column {name} is of type {kind}; delete {folder} and prepare it again"
            )
        if name == "second" and column.null_count == len(column):  # single sentences
            continue
        if column.null_count or (
            inner and any(chunk.flatten().null_count for chunk in column.chunks)
        ):
            raise UserError(
                f"{path}: column {name} lacks values; delete {folder} and prepare it again"
            )
    return table


def has_column(folder: Path, split: str, column: str) -> bool:
    """Return whether a split has the column. The split's file must be readable."""
    import pyarrow.parquet as pq

    return column in pq.read_schema(folder / f"{split}.parquet").names


def digest_data(folder: Path) -> str:
    """Return the sha256 over names and contents of the .parquet and .json files of a folder, except record.json."""
    manifest = folder / "dataset.json"
    if not manifest.exists():
        raise MissingFileError(manifest)
    files = [
        path
        for path in folder.iterdir()
        if path.suffix in (".parquet", ".json") and path.name != "record.json"
    ]
    lines = "".join(f"{hash_file(path)}  {path.name}\n" for path in sorted(files))
    return hashlib.sha256(lines.encode()).hexdigest()
