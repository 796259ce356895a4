"""The predictions of a run: a row for each example of a split and each kept checkpoint."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.parquet_files import read_parquet


def read_predictions(file: Path, readout: str | None) -> pa.Table:
    """Read the predictions of a run on sequences, by split, in the order of the data.

    They are those of the best checkpoint, or of the one that `readout` names. Raises UserError if
    the file is missing, damaged or changed, or has no predictions of that checkpoint.
    """
    table = read_parquet(file)
    if "readout" not in table.column_names:  # the run keeps one checkpoint only
        table = table.append_column("readout", pa.nulls(len(table), pa.string()))
    is_of_readout = pc.field("readout").is_null()
    if readout is not None:
        is_of_readout = pc.field("readout") == readout
    selected = table.filter(is_of_readout)
    if readout is not None and not len(selected):
        raise UserError(
            f"{file} has no predictions of the checkpoint '{readout}': the run does not keep it"
        )
    return selected.sort_by([("split", "ascending"), ("row", "ascending")])
