"""What all but sequence-to-sequence data sets share: tables of columns, written as Parquet with `dataset.json`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workflow_scripts.common.files import write_json


@dataclass
class PreparedRecords:
    """What the `prepare` function of a data module of another kind than `seq2seq` returns.

    tables: split -> column -> values. Columns of prompt tasks: `item` (a stable key), `content` (the definition or
        sentence, without any template), `label`, `subset`; of text tasks: `source`, `ids` (the tokens of one document,
        without beginning and end); of sentence tasks: the fields of `data.sentences.Sentence`. All are text but `ids`,
        lists of 32-bit integers, and numbers.
    protocol: the best that these data allow: `paper`, `reduced` or `stand_in`.
    extra_files: name -> JSON content, or text that is written as it is.
    described: what dataset.json says of the task beside all that it always says.
    """

    tables: dict[str, dict[str, list]]
    notes: list[str]
    protocol: str = "paper"
    extra_files: dict[str, Any] = field(default_factory=dict)
    described: dict[str, Any] = field(default_factory=dict)


def fill(prepared: PreparedRecords, folder: Path) -> dict[str, Any]:
    """Write one Parquet file per split and the extra files; returns what dataset.json says of them."""
    # The catalogue reads the options of this module's users, and must not wait for this.
    import pyarrow
    import pyarrow.parquet

    types = {"ids": pyarrow.list_(pyarrow.int32())}

    def kind(column: str, values: list) -> pyarrow.DataType:
        number = bool(values) and isinstance(values[0], float)
        return types.get(column, pyarrow.float64() if number else pyarrow.string())

    summary = {}
    for name, columns in prepared.tables.items():
        schema = pyarrow.schema({column: kind(column, values) for column, values in columns.items()})
        table = pyarrow.Table.from_pydict(columns, schema=schema)
        pyarrow.parquet.write_table(table, folder / f"{name}.parquet", compression="zstd")
        # The key of an item makes no two of them different.
        told = [map(tuple, v) if column == "ids" else v for column, v in columns.items() if column != "item"]
        summary[name] = {"rows": table.num_rows, "distinct": len(set(zip(*told, strict=True)))}
    for name, content in prepared.extra_files.items():
        if isinstance(content, str):
            (folder / name).write_text(content, encoding="utf-8")
        else:
            write_json(folder / name, content)
    return {"splits": summary, **prepared.described}
