"""Read run.json, and check it against the data."""

from pathlib import Path
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_json
from workflow_scripts.common.hashing import digest


def read_run(run_dir: Path) -> dict[str, Any]:
    """Read run.json of a trained run. Raises UserError if it is missing or not a run.json."""
    run = read_json(run_dir / "run.json")
    if not isinstance(run, dict) or not {"run", "scale", "spec", "spec_digest", "data_digest"} <= run.keys():
        raise UserError(f"{run_dir / 'run.json'} is not what train writes; train the run again")
    return run


def read_checked_run(run_dir: Path, data_dir: Path) -> dict[str, Any]:
    """Read run.json. Raises UserError if it was changed, or if run and data do not belong together."""
    from workflow_scripts.data.reading import data_digest

    run = read_run(run_dir)
    if digest(run["spec"]) != run["spec_digest"]:
        raise UserError(
            f"{run_dir / 'run.json'} was changed after training: its spec has another digest; train the run again"
        )
    if data_digest(data_dir) != run["data_digest"]:
        raise UserError(f"{run_dir} was trained on other data than {data_dir}; give its own, or train the run again")
    return run
