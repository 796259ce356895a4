"""The predictions of a run: a row for each example of a split and each kept checkpoint."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from workflow_scripts.common.parquet_files import read_parquet


def read_predictions(file: Path, readout: str | None) -> pa.Table:
    """Read the predictions of a run on sequences, by split, in the order of the data.

    They are those of the best checkpoint, or of the one that `readout` names. Raises UserError if
    the file is missing, damaged or changed.
    """
    table = read_parquet(file)
    if "readout" in table.column_names:  # it is missing where a run keeps one checkpoint only
        is_of_readout = pc.field("readout").is_null()
        if readout is not None:
            is_of_readout = pc.field("readout") == readout
        table = table.filter(is_of_readout)
    return table.sort_by([("split", "ascending"), ("row", "ascending")])
