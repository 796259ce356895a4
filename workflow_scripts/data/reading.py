"""Reading of a prepared data folder: Parquet splits, vocabulary.json, and the digest of the folder."""

import hashlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import MissingFileError, hash_file, read_json


def read_vocabulary(folder: Path) -> dict[str, list[str]]:
    """Read vocabulary.json of a data folder: side (`source`, `target`) -> tokens by id. Raises UserError if invalid."""
    content = read_json(folder / "vocabulary.json")
    if not isinstance(content, dict) or content.keys() != {"source", "target"}:
        raise UserError(f"{folder / 'vocabulary.json'} is not a vocabulary; delete {folder} and prepare it again")
    return content


def read_table(folder: Path, split: str, columns: list[str] | None = None) -> pa.Table:
    """Read the given columns of a split, or all columns.

    Raises UserError with the file name if the file is missing, broken or empty, or lacks a column.
    """
    path = folder / f"{split}.parquet"
    try:
        with pq.ParquetFile(path) as file:
            table = file.read(columns=columns)
    except FileNotFoundError as error:
        raise UserError(f"{path} does not exist; delete {folder} and prepare it again") from error
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{path} cannot be read ({reason}); delete {folder} and prepare it again") from error
    absent = sorted(set(columns or ()) - set(table.column_names))
    if absent:
        raise UserError(f"{path} has no column {absent[0]}; delete {folder} and prepare it again")
    if not table.num_rows:
        raise UserError(f"{path} has no rows; delete {folder} and prepare it again")
    return table


def has_column(folder: Path, split: str, column: str) -> bool:
    """Return whether a split has the column. The split's file must be readable."""
    return column in pq.read_schema(folder / f"{split}.parquet").names


def data_digest(folder: Path) -> str:
    """Return the sha256 over names and contents of the .parquet and .json files of a folder, except record.json."""
    manifest = folder / "dataset.json"
    if not manifest.exists():
        raise MissingFileError(manifest)
    files = [path for path in folder.iterdir() if path.suffix in (".parquet", ".json") and path.name != "record.json"]
    lines = "".join(f"{hash_file(path)}  {path.name}\n" for path in sorted(files))
    return hashlib.sha256(lines.encode()).hexdigest()
