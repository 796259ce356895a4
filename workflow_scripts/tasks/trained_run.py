"""Read run.json, and check it against the checkpoint and the data."""

from pathlib import Path
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import digest, hash_files, read_json


def read_run(run_dir: Path) -> dict[str, Any]:
    """Read run.json of a trained run. Raises UserError if it is missing or not a run.json."""
    run = read_json(run_dir / "run.json")
    needed = {"run", "scale", "spec", "spec_digest", "data_digest", "files"}
    of_spec = {"task", "kind", "method", "variant", "seed", "protocol", "training"}
    if not (isinstance(run, dict) and needed <= run.keys() and isinstance(run["files"], dict)) or not (
        isinstance(run["spec"], dict) and of_spec <= run["spec"].keys()
    ):
        raise UserError(f"{run_dir / 'run.json'} is not what train writes; train the run again")
    return run


def check_checkpoint(run_dir: Path, run: dict[str, Any]) -> None:
    """Raise UserError if a file of the checkpoint is missing, added, or differs from its sha256 in run.json."""
    recorded = {name: value for name, value in run["files"].items() if name.startswith("checkpoint/")}
    actual = {f"checkpoint/{name}": value for name, value in hash_files(run_dir / "checkpoint").items()}
    for name in sorted(recorded.keys() | actual.keys()):
        if (found := actual.get(name)) != (expected := recorded.get(name)):
            found, expected = (f"sha256 {value}" if value else "no such file" for value in (found, expected))
            raise UserError(
                f"{run_dir / name}: expected {expected}, by run.json, found {found}; delete {run_dir} and train again"
            )


def read_checked_run(run_dir: Path, data_dir: Path) -> dict[str, Any]:
    """Read run.json. Raises UserError if it or the checkpoint was changed, or if the data are not those of the run."""
    from workflow_scripts.data.prepared import digest_data

    run = read_run(run_dir)
    if digest(run["spec"]) != run["spec_digest"]:
        changed = f"{run_dir / 'run.json'} was changed after training: its spec has another digest"
        raise UserError(f"{changed}; train the run again")
    if digest_data(data_dir) != run["data_digest"]:
        raise UserError(f"{run_dir} was trained on other data than {data_dir}; give its own, or train the run again")
    check_checkpoint(run_dir, run)
    return run
