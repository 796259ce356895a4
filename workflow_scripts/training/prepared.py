"""Reading a prepared data folder: Parquet splits, vocabulary.json, dataset.json."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from workflow_scripts.errors import UserError
from workflow_scripts.files import read_json, sha256_file
from workflow_scripts.training.batches import Pairs, sequences


@dataclass(frozen=True)
class Vocabulary:
    """Token of each id, by side."""

    source: list[str]
    target: list[str]


def read_vocabulary(folder: Path) -> Vocabulary:
    """vocabulary.json of a data folder; raises UserError when it is missing or broken."""
    content = read_json(folder / "vocabulary.json")
    if not isinstance(content, dict) or not {"source", "target"} <= content.keys():
        raise UserError(f"{folder / 'vocabulary.json'} lacks source or target; delete {folder} and prepare it again")
    return Vocabulary(content["source"], content["target"])


def read_table(folder: Path, split: str, columns: list[str]) -> pa.Table:
    """The named columns of a split. Raises UserError naming the file when it is missing, broken or empty."""
    path = folder / f"{split}.parquet"
    try:
        with pq.ParquetFile(path) as file:
            table = file.read(columns=columns)
    except FileNotFoundError as error:
        raise UserError(f"{path} does not exist; make it with ./reproduce {folder}") from error
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{path} cannot be read ({reason}); delete {folder} and prepare it again") from error
    missing = sorted(set(columns) - set(table.column_names))
    if missing:
        raise UserError(f"{path} has no column {missing[0]}; delete {folder} and prepare it again")
    if not table.num_rows:
        raise UserError(f"{path} has no rows; delete {folder} and prepare it again")
    return table


def read_pairs(folder: Path, split: str) -> Pairs:
    """The id columns of a split."""
    table = read_table(folder, split, ["source_ids", "target_ids"])
    return Pairs(sequences(table["source_ids"]), sequences(table["target_ids"]))


def data_digest(folder: Path) -> str:
    """sha256 over names and contents of the folder's files: equal data, equal digest."""
    if not (folder / "dataset.json").exists():
        raise UserError(f"{folder / 'dataset.json'} does not exist; make it with ./reproduce {folder}")
    files = sorted(path for path in folder.iterdir() if path.suffix in (".parquet", ".json"))
    lines = "".join(f"{sha256_file(path)}  {path.name}\n" for path in files)
    return hashlib.sha256(lines.encode()).hexdigest()
