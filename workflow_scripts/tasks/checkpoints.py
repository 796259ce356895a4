"""Read and check a finished run and the files of its checkpoint."""

from dataclasses import dataclass
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import digest, hash_files, read_json
from workflow_scripts.tasks.run_spec import RunSpec, read_run_spec


@dataclass(frozen=True)
class FinishedRun:
    """The content of the run.json of a training.

    scale: None for a spec file without a scale. files: sha256 of each file of the run's folder, by its name there.
    """

    name: str
    scale: str | None
    spec: RunSpec
    spec_digest: str
    data_digest: str
    files: dict[str, str]

    @property
    def weights_sha256(self) -> str:
        """The sha256 of the best weights."""
        return self.files["checkpoint/model.safetensors"]


def read_run(run_dir: Path) -> FinishedRun:
    """Read run.json of a trained run. Raises UserError if it is missing, not one, or its spec was changed."""
    file = run_dir / "run.json"
    content = read_json(file)
    needed = {"run", "scale", "spec", "spec_digest", "data_digest", "files"}
    if (
        not isinstance(content, dict)
        or not needed <= content.keys()
        or not isinstance(content["files"], dict)
    ):
        raise UserError(f"{file} is not what train writes; train the run again")
    if digest(content["spec"]) != content["spec_digest"]:
        raise UserError(
            f"{file} was changed after training: its spec has another digest; train the run again"
        )
    spec = read_run_spec(content["spec"], file, "spec")
    digests = content["spec_digest"], content["data_digest"]
    return FinishedRun(content["run"], content["scale"], spec, *digests, content["files"])


def check_checkpoint(run_dir: Path, run: FinishedRun) -> None:
    """Raise UserError if a file of the checkpoint is missing, added, or differs from its sha256 in run.json."""
    recorded = {name: value for name, value in run.files.items() if name.startswith("checkpoint/")}
    actual = {
        f"checkpoint/{name}": value for name, value in hash_files(run_dir / "checkpoint").items()
    }
    for name in sorted(recorded.keys() | actual.keys()):
        if (found := actual.get(name)) != (expected := recorded.get(name)):
            found, expected = (
                f"sha256 {value}" if value else "no such file" for value in (found, expected)
            )
            raise UserError(
                f"{run_dir / name}: expected {expected}, by run.json, found {found}; delete {run_dir} and train again"
            )


def read_checked_run(run_dir: Path, data_dir: Path) -> FinishedRun:
    """Read run.json. Raises UserError if it or the checkpoint was changed, or if the data are not those of the run."""
    from workflow_scripts.data.prepared import digest_data

    run = read_run(run_dir)
    if digest_data(data_dir) != run.data_digest:
        raise UserError(
            f"{run_dir} was trained on other data than {data_dir}; give its own, or train the run again"
        )
    check_checkpoint(run_dir, run)
    return run
