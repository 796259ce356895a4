"""Make the data folder of a task, from its source files or its grammar: Parquet files, dataset.json and more."""

import importlib
from pathlib import Path
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import replacing, sha256_files, write_json
from workflow_scripts.data import prepared, records, streamed
from workflow_scripts.evaluation.protocol import worst_protocol

Made = prepared.Prepared | records.PreparedRecords | streamed.Streamed
FILL = {prepared.Prepared: prepared.fill, records.PreparedRecords: records.fill, streamed.Streamed: streamed.fill}


def prepare(spec: dict[str, Any], sources: dict[str, Path], out: Path) -> None:
    """Write what the module of a data spec makes of the source files. Raises UserError where they are malformed."""
    write_data(importlib.import_module(spec["prepare"]).prepare(spec["options"], sources), spec, out)


def write_data(made: Made, spec: dict[str, Any], out: Path) -> None:
    """Write the data folder of a task at once; the same input gives the same bytes.

    The worse protocol of spec and data is written. Raises UserError when a split is empty, or when the spec does not
    say that the data are made up.
    """
    task = spec["task"]
    if made.protocol == "stand_in" and spec["protocol"] != "stand_in":
        raise UserError(f"task {task}: its data are made up, but its protocol is {spec['protocol']}; make it stand_in")
    with replacing(out) as folder:
        folder.mkdir()
        content = FILL[type(made)](made, folder)
        for name, counts in content["splits"].items():
            if not counts["rows"]:
                raise UserError(f"task {task}: split {name} is empty; its sources or options leave too little")
        content |= {"task": task, "protocol": worst_protocol(spec["protocol"], made.protocol), "notes": made.notes}
        write_json(folder / "dataset.json", {**content, "spec": spec, "files": sha256_files(folder)})
