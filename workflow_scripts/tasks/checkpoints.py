"""Read and check a finished run and the files of its checkpoint."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import digest, hash_files, read_json
from workflow_scripts.common.result_folders import RunFolder
from workflow_scripts.common.run_names import Run
from workflow_scripts.tasks.run_spec import RunSpec, read_run_spec

RUN = RunFolder(Path())  # the names of files in run.json


@dataclass(frozen=True)
class FinishedRun:
    """The content of the run.json of a training.

    scale: None for a spec file without a scale. files: sha256 of each file of the run's folder, by
    its name there.
    """

    scale: str | None
    spec: RunSpec
    spec_digest: str
    data_digest: str
    files: dict[str, str]

    @property
    def checkpoint_files(self) -> dict[str, str]:
        """The sha256 of each file of the checkpoint, by its name there."""
        files = {}
        for name, sha256 in self.files.items():
            if Path(name).is_relative_to(RUN.checkpoint):
                files[Path(name).relative_to(RUN.checkpoint).as_posix()] = sha256
        return files

    @property
    def has_weights(self) -> bool:
        """Whether there is a sha256 of the best weights."""
        return RUN.weights.as_posix() in self.files

    @property
    def run(self) -> Run:
        """The name of the run."""
        return self.spec.run

    @property
    def weights_sha256(self) -> str:
        """The sha256 of the best weights."""
        return self.files[RUN.weights.as_posix()]


def read_run(run_dir: Path) -> FinishedRun:
    """Read run.json of a trained run.

    Raises UserError if it is missing, not one, or its spec was changed.
    """
    file = RunFolder(run_dir).manifest
    content = read_json(file)
    if not _is_run(content):
        raise UserError(f"{file} is not what train writes; train the run again")
    if digest(content["spec"]) != content["spec_digest"]:
        raise UserError(
            f"{file} was changed after training: its spec has another digest; train the run again"
        )
    return FinishedRun(
        scale=content["scale"],
        spec=read_run_spec(content["spec"], file, "spec"),
        spec_digest=content["spec_digest"],
        data_digest=content["data_digest"],
        files=content["files"],
    )


def _is_run(content: Any) -> bool:
    """Whether the content of a JSON file has the keys of run.json."""
    if not isinstance(content, dict):
        return False
    keys = {"run", "scale", "spec", "spec_digest", "data_digest", "files"}
    return keys <= content.keys() and isinstance(content["files"], dict)


def check_checkpoint(run_dir: Path, run: FinishedRun) -> None:
    """Raise UserError if a file of the checkpoint is missing, added, or was changed.

    A file was changed if it differs from its sha256 in run.json.
    """
    checkpoint = RunFolder(run_dir).checkpoint
    recorded = run.checkpoint_files
    actual = hash_files(checkpoint)
    for name in sorted(recorded.keys() | actual.keys()):
        expected_sha256 = recorded.get(name)
        actual_sha256 = actual.get(name)
        if expected_sha256 is None:
            raise UserError(
                f"{checkpoint / name} is not a file of the training, by run.json; move it elsewhere"
            )
        if actual_sha256 != expected_sha256:
            actual_file = "no such file"
            if actual_sha256:
                actual_file = f"sha256 {actual_sha256}"
            raise UserError(
                f"{checkpoint / name}: expected sha256 {expected_sha256}, by run.json, "
                f"found {actual_file}; delete {run_dir} and train again"
            )


def read_checked_run(run_dir: Path, data_dir: Path) -> FinishedRun:
    """Read run.json.

    Raises UserError if it or the checkpoint was changed, or if the data are not those of the run.
    """
    from workflow_scripts.data.prepared import digest_data

    run = read_run(run_dir)
    if digest_data(data_dir) != run.data_digest:
        raise UserError(
            f"{run_dir} was trained on other data than {data_dir}; "
            "give its own, or train the run again"
        )
    check_checkpoint(run_dir, run)
    return run
