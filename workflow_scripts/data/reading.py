"""Reading a prepared data folder: Parquet splits, vocabulary.json, dataset.json."""

import hashlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import missing, read_json, sha256_file


def read_vocabulary(folder: Path) -> dict[str, list[str]]:
    """vocabulary.json of a data folder: side (`source`, `target`) -> tokens by id. Raises UserError when broken."""
    content = read_json(folder / "vocabulary.json")
    if not isinstance(content, dict) or content.keys() != {"source", "target"}:
        raise UserError(f"{folder / 'vocabulary.json'} is not a vocabulary; delete {folder} and prepare it again")
    return content


def read_table(folder: Path, split: str, columns: list[str] | None = None) -> pa.Table:
    """The named columns of a split, or all. Raises UserError naming the file when it is missing, broken or empty."""
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
    """Whether a split that can be read has the column."""
    return column in pq.read_schema(folder / f"{split}.parquet").names


def data_digest(folder: Path) -> str:
    """sha256 over names and contents of the folder's files but record.json: equal data, equal digest."""
    manifest = folder / "dataset.json"
    if not manifest.exists():
        raise missing(manifest)
    files = [path for path in folder.iterdir() if path.suffix in (".parquet", ".json") and path.name != "record.json"]
    lines = "".join(f"{sha256_file(path)}  {path.name}\n" for path in sorted(files))
    return hashlib.sha256(lines.encode()).hexdigest()
