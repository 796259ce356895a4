"""Write and read a task's data folder.

It has one Parquet file per split, dataset.json, vocabularies and further files.

Every `prepare` of `datasets/` returns one of the three dataset classes here. pyarrow is imported in
functions: it takes half a second, and reading the catalogue imports this module.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import (
    MissingFileError,
    hash_file,
    hash_files,
    list_files,
    read_json,
    write_atomically,
    write_json,
)
from workflow_scripts.common.result_folders import DataFolder
from workflow_scripts.data.data_spec import DataSpec
from workflow_scripts.data.sources.task_sources import DataOptions
from workflow_scripts.data.splits import Example
from workflow_scripts.data.token_ids import SPECIAL_TOKENS, UNK
from workflow_scripts.evaluation.protocol import find_worst_protocol

if TYPE_CHECKING:
    import pyarrow

LISTS = ("ids", "groups", "sememes")  # how the names of columns with lists of numbers end


@dataclass
class Seq2SeqDataset:
    """Pairs of a source and a target, split into tokens at spaces.

    subset_groups: group name -> its subsets, for scores over groups of subsets.
    columns: split -> column -> one text per row, in addition to the fields of Example.
    files: name -> JSON content of a further file of the folder, such as a lexicon.
    whole_targets: splits whose targets are whole texts, to score outputs by, because they are not
        split into the tokens of the vocabulary. Their `target_ids` are empty.
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
        """Write one Parquet file per split, `vocabulary.json`, and each file of `self.files`.

        Return what dataset.json has of them; `write_data` adds the rest.
        """
        train = self.splits["train"]
        sources = build_vocabulary([example.source for example in train])
        targets = build_vocabulary([example.target for example in train])
        summary = {}
        for split, columns in collect_columns(self.splits, Example._fields).items():
            columns["source_ids"] = look_up_ids(columns["source"], sources)
            if split in self.whole_targets:
                columns["target_ids"] = [[] for _ in columns["target"]]
            else:
                columns["target_ids"] = look_up_ids(columns["target"], targets)
            write_split(folder, split, columns | self.columns.get(split, {}))
            summary[split] = summarise_pairs(columns)
        write_json(DataFolder(folder).vocabulary, {"source": sources, "target": targets})
        for name, content in self.files.items():
            write_json(folder / name, content)
        return {
            "splits": summary,
            "subset_groups": self.subset_groups,
            "vocabulary": {"source": len(sources), "target": len(targets)},
            **self.described,
        }


def summarise_pairs(columns: Mapping[str, list]) -> dict[str, int]:
    """Count what dataset.json has of a split of a Seq2SeqDataset.

    Lengths are in tokens; unknown tokens are counted on both sides.
    """
    distinct_pairs = set(zip(columns["source"], columns["target"], strict=True))
    id_lists = columns["source_ids"] + columns["target_ids"]
    n_unknown = sum(ids.count(UNK) for ids in id_lists)
    return {
        "rows": len(columns["source"]),
        "distinct": len(distinct_pairs),
        "out_of_vocabulary_tokens": n_unknown,
        "longest_source": max(map(len, columns["source_ids"]), default=0),
        "longest_target": max(map(len, columns["target_ids"]), default=0),
    }


class PromptItem(NamedTuple):
    """A row of prompt tasks: a stable key, and the definition or sentence with its label.

    `content` has no template.
    """

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
        lists of 32-bit integers; all other values are texts or numbers.
    extra_files: name -> text. described: further content of dataset.json. `labels` are the names of
        the classes of sentence_prediction; without them its labels are scores.
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
        for split, columns in self.tables.items():
            write_split(folder, split, columns)
            summary[split] = summarise_table(columns)
        for name, content in self.extra_files.items():
            (folder / name).write_text(content, encoding="utf-8")
        return {"splits": summary, **self.described}


def summarise_table(columns: Mapping[str, list]) -> dict[str, int]:
    """Count the rows, and the distinct rows without `item`, which is unique for each row.

    columns: all of the same length.
    """
    hashable_columns: list[Iterable] = []
    for name, values in columns.items():
        if name == "ids":
            hashable_columns.append(map(tuple, values))
        elif name != "item":
            hashable_columns.append(values)
    rows = list(zip(*hashable_columns, strict=True))
    return {"rows": len(rows), "distinct": len(set(rows))}


@dataclass
class StreamedDataset:
    """Data that do not fit into memory. `fill` writes all files that training reads into a folder.

    It returns content of dataset.json, including `splits`: name -> counts, one of them `rows`.
    """

    fill: Callable[[Path], dict[str, Any]]
    notes: list[str]
    protocol: str = "paper"

    def write(self, folder: Path) -> dict[str, Any]:
        """Write all files except dataset.json, and return what it has of them."""
        return {"subset_groups": {}, **self.fill(folder)}


Dataset = Seq2SeqDataset | TableDataset | StreamedDataset


def prepare_data(module: ModuleType, options: DataOptions, sources: dict[str, Path]) -> Dataset:
    """Prepare the data of a module of `datasets/` by its Options.

    Raises UserError for missing or malformed sources.
    """
    dataset = module.prepare(options, sources)
    if options.origin == "stand_in":
        return replace(dataset, protocol="stand_in")
    return dataset


def collect_columns(
    splits: Mapping[str, Sequence], fields: Sequence[str]
) -> dict[str, dict[str, list]]:
    """Turn rows with these fields into columns: split -> field -> values."""
    tables: dict[str, dict[str, list]] = {}
    for split, rows in splits.items():
        tables[split] = {}
        for name in fields:
            tables[split][name] = [getattr(row, name) for row in rows]
    return tables


def write_split(folder: Path, split: str, columns: dict[str, list]) -> None:
    """Write the Parquet file of a split.

    Its columns are texts, numbers, or, by LISTS, lists of 32-bit integers. Raises UserError for a
    column of anything else, or one that lacks values, but for `second` where all sentences are
    single.
    """
    import pyarrow.parquet

    arrays = {}
    for name, values in columns.items():
        column_type = find_column_type(name, values)
        try:
            arrays[name] = pyarrow.array(values, column_type)
        except (pyarrow.ArrowException, OverflowError, TypeError) as error:
            reason = str(error).partition("\n")[0]
            raise UserError(
                f"column {name} of the split {split} is not all of the type {column_type} "
                f"({reason}); correct the data set's prepare"
            ) from error
        if has_missing_values(name, pyarrow.chunked_array([arrays[name]])):
            raise UserError(
                f"column {name} of the split {split} lacks values; correct the data set's prepare"
            )
    table = pyarrow.table(arrays)
    pyarrow.parquet.write_table(table, DataFolder(folder).split(split), compression="zstd")


def find_column_type(name: str, values: list) -> "pyarrow.DataType":
    """Find the type of a column of `write_split`."""
    import pyarrow

    if name.endswith(LISTS):
        return pyarrow.list_(pyarrow.int32())
    first = next((value for value in values if value is not None), "")
    if isinstance(first, int | float) and not isinstance(first, bool):
        return pyarrow.float64()
    return pyarrow.string()


def build_vocabulary(sentences: list[str]) -> list[str]:
    """Return the tokens by id: special tokens, then all by decreasing frequency.

    Ties are in alphabetical order.
    """
    counts: Counter[str] = Counter()
    for sentence in sentences:
        counts.update(sentence.split(" "))
    return SPECIAL_TOKENS + sorted(counts, key=lambda token: (-counts[token], token))


def look_up_ids(sentences: list[str], vocabulary: list[str]) -> list[list[int]]:
    """Return the ids of the tokens of each sentence, UNK for tokens without one."""
    ids = {token: i for i, token in enumerate(vocabulary)}
    numbered = []
    for sentence in sentences:
        numbered.append([ids.get(token, UNK) for token in sentence.split(" ")])
    return numbered


def write_data(dataset: Dataset, spec: DataSpec, out: Path) -> None:
    """Write the data folder of a task atomically, with the worse protocol of spec and data.

    Equal input: equal bytes. What a killed process has left of the folder is deleted.

    Raises UserError for an empty split, or for stand-in data if the spec's protocol is not
    `stand_in`.
    """
    task = spec.task
    if dataset.protocol == "stand_in" and spec.protocol != "stand_in":
        raise UserError(
            f"task {task}: stand-in data, but the protocol is {spec.protocol}; set it to stand_in"
        )
    notes = []
    if dataset.protocol == "stand_in":
        notes.append("stand-in data: generated, in the format of the real data")
    with write_atomically(out) as folder:
        folder.mkdir()
        content = dataset.write(folder)
        _check_splits(content["splits"], spec)
        for name, counts in content["splits"].items():
            if not counts["rows"]:
                raise UserError(
                    f"task {task}: split {name} is empty; its sources or options leave too little"
                )
        content["task"] = task
        content["protocol"] = find_worst_protocol(spec.protocol, dataset.protocol)
        content["notes"] = notes + dataset.notes
        content["spec"] = spec.to_json()
        content["files"] = hash_files(folder)
        write_json(DataFolder(folder).manifest, content)


def _check_splits(splits: Collection[str], spec: DataSpec) -> None:
    """Raise UserError unless the splits are those that the data set states."""
    stated = set(spec.options.list_splits())
    problems = [f"makes no split {name}" for name in sorted(stated - set(splits))]
    problems += [f"makes the split {name}" for name in sorted(set(splits) - stated)]
    if problems:
        raise UserError(
            f"task {spec.task}: {spec.prepare} {problems[0]}, "
            f"but its `list_splits` returns {', '.join(sorted(stated))}; correct one of them"
        )


def read_vocabularies(folder: Path) -> dict[str, list[str]]:
    """Read vocabulary.json of a data folder: side (`source`, `target`) -> tokens by id.

    Raises UserError if invalid.
    """
    file = DataFolder(folder).vocabulary
    content = read_json(file)
    if not isinstance(content, dict) or content.keys() != {"source", "target"}:
        raise UserError(f"{file} is not a vocabulary; delete {folder} and prepare it again")
    for side, tokens in content.items():
        if not is_list_of_texts(tokens):
            raise UserError(f"{file}: key '{side}' is no list of texts; make {folder} again")
    return content


def is_list_of_texts(value: Any) -> bool:
    """Return whether a value is a list of one or more texts."""
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(element, str) for element in value)


def read_table(folder: Path, split: str, columns: list[str] | None = None) -> "pyarrow.Table":
    """Read columns of a split (default: all).

    Raises UserError if its file is missing, broken, empty or lacks one.
    """
    import pyarrow
    import pyarrow.parquet as pq

    path = DataFolder(folder).split(split)
    try:
        with pq.ParquetFile(path) as file:
            table = file.read(columns=columns)
            rows = file.metadata.num_rows
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
        if not has_written_type(name, column):
            raise UserError(
                f"{path}: column {name} is of type {column.type}; "
                f"delete {folder} and prepare it again"
            )
        if has_missing_values(name, column):
            raise UserError(
                f"{path}: column {name} lacks values; delete {folder} and prepare it again"
            )
    return table


def has_written_type(name: str, column: "pyarrow.ChunkedArray") -> bool:
    """Return whether a column of this name has a type that `write_split` writes."""
    import pyarrow

    is_list = pyarrow.types.is_list(column.type)
    if is_list != name.endswith(LISTS):
        return False
    if is_list:
        return pyarrow.types.is_integer(column.type.value_type)
    return str(column.type) in ("string", "double")


def has_missing_values(name: str, column: "pyarrow.ChunkedArray") -> bool:
    """Return whether a value is absent, in `second` unless all are, as with single sentences."""
    import pyarrow

    if name == "second" and column.null_count == len(column):
        return False
    if column.null_count:
        return True
    if not pyarrow.types.is_list(column.type):
        return False
    return any(chunk.flatten().null_count for chunk in column.chunks)


def has_column(folder: Path, split: str, column: str) -> bool:
    """Return whether a split has the column. The split's file must be readable."""
    import pyarrow.parquet as pq

    return column in pq.read_schema(DataFolder(folder).split(split)).names


def digest_data(folder: Path) -> str:
    """Return the sha256 over names and contents of a folder's files.

    They are the .parquet and .json files, without record.json, and the arrays of mapped splits.
    """
    data = DataFolder(folder)
    if not data.manifest.exists():
        raise MissingFileError(data.manifest)
    lines = ""
    for path in list_files(folder, "**/*"):
        if path.suffix in (".parquet", ".json", ".npy") and path != data.record:
            lines += f"{hash_file(path)}  {path.relative_to(folder).as_posix()}\n"
    return hashlib.sha256(lines.encode()).hexdigest()
