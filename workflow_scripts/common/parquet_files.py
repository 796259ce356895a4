"""Parquet files: a damaged or changed one is an error in one line that names it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import MissingFileError
from workflow_scripts.common.result_folders import verify_checksum

if TYPE_CHECKING:
    import pyarrow


def read_parquet(file: Path, **options: Any) -> "pyarrow.Table":
    """Read a Parquet file; `options` are those of `pyarrow.parquet.read_table`.

    Raises UserError if it is missing, damaged, or not the file of the manifest in its folder.
    """
    import pyarrow
    import pyarrow.parquet

    verify_checksum(file)
    try:
        return pyarrow.parquet.read_table(file, **options)
    except FileNotFoundError as error:
        raise MissingFileError(file) from error
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        reason = str(error).partition("\n")[0]
        raise UserError(
            f"{file} is no Parquet file ({reason}); restore it, or run ./reproduce again"
        ) from error
