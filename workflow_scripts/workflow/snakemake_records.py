"""Results of jobs, and Snakemake's own records of them."""

from base64 import urlsafe_b64decode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import digest, is_system_file, list_files, read_mapping
from workflow_scripts.common.result_folders import RunFolder
from workflow_scripts.workflow.result_patterns import FOLDERS, get_stage, locate_record


@dataclass(frozen=True)
class Result:
    """A result of a job, which may be there or kept.

    records: Snakemake's record of each output that it has. outputs: all of the job, of which some
    may have been deleted.
    """

    rule: str
    wildcards: dict[str, str]
    records: dict[str, dict[str, Any]]
    outputs: list[str]

    @property
    def stage(self) -> str:
        """The stage of its rule."""
        return get_stage(self.rule)

    @property
    def folder(self) -> Path:
        """The folder of the job."""
        return locate_record(self.stage, self.wildcards).parent

    @property
    def params(self) -> list[str]:
        """The parameters that Snakemake recorded, each as Python's literal."""
        record = next(iter(self.records.values()), {})
        return record.get("params") or []

    def is_as_recorded_by(self, file: Path) -> bool:
        """Whether a record in the folder of the job has the fingerprint that Snakemake recorded."""
        try:
            record = read_mapping(file)
        except UserError:
            return False
        return repr(record.get("fingerprint")) in self.params

    @cached_property
    def inputs(self) -> dict[str, str]:
        """Input -> recorded sha256; without weights, whose sha256 the manifests hold."""
        record = next(iter(self.records.values()), {})
        checksums = record.get("input_checksums") or {}
        return {
            name: checksum.removeprefix("sha256:")
            for name, checksum in checksums.items()
            if not name.endswith(".safetensors")
        }

    @property
    def key(self) -> str:
        """What tells the result from others of the job."""
        return digest([self.rule, self.wildcards, self.params, self.inputs])

    @property
    def size(self) -> int:
        """The bytes of its files."""
        return sum(file.stat().st_size for file in self.list_files())

    def list_files(self) -> list[Path]:
        """List the files that the job writes and that are there; not those of others."""
        patterns = FOLDERS[self.stage].names
        files = []
        for path in list_files(self.folder, "**/*"):
            first = path.relative_to(self.folder).parts[0]
            if path.is_file() and any(fnmatch(first, pattern) for pattern in patterns):
                files.append(path)
        if self.stage == "train":
            run = RunFolder(self.folder)
            scores = (run.evaluation.path, run.interventions.path)
            files = [file for file in files if not any(map(file.is_relative_to, scores))]
        return [file for file in files if not file.name.startswith(".")]


class SnakemakeRecords:
    """Snakemake's records of the files in this folder."""

    def __init__(self) -> None:
        from snakemake.persistence.file import FilePersistence

        self._store: Any = FilePersistence(nolock=True, path=Path(".snakemake").absolute())

    def read(self, rule: str, wildcards: dict[str, str], outputs: Iterable[str]) -> Result | None:
        """Read the result of a job; None unless all its outputs are there and of one making."""
        names = list(outputs)
        if not all(Path(output).exists() for output in names):
            return None
        return self.read_remaining(rule, wildcards, names)

    def read_remaining(
        self, rule: str, wildcards: dict[str, str], outputs: Iterable[str]
    ) -> Result | None:
        """Read what is left of the result of a job, of which outputs may have been deleted.

        None if none of its outputs is there, or if these are not of one making.
        """
        names = list(outputs)
        records = {}
        for output in names:
            if Path(output).exists():
                records[output] = self._store._io_read(self._store._metadata_path, output)
        if not records:
            return None
        made = [(record.get("params"), record.get("input")) for record in records.values()]
        is_marked = self._store._filter_incomplete_keys(records)
        if is_marked or None in made[0] or any(content != made[0] for content in made):
            return None
        return Result(rule, wildcards, records, names)

    def start(self, result: Result) -> None:
        """Mark the outputs as incomplete: a job that is interrupted now is run again."""
        self.mark_incomplete(result.records)

    def mark_incomplete(self, outputs: Iterable[str]) -> None:
        """Mark outputs as incomplete: the next call makes them again, or takes them as current."""
        for output in outputs:
            self._store._mark_incomplete(output, None)

    def is_any_incomplete(self, outputs: Iterable[str]) -> bool:
        """Whether an output is marked as incomplete."""
        return bool(self._store._filter_incomplete_keys(list(outputs)))

    def finish(self, result: Result) -> None:
        """Write the records of a result that is in its place."""
        for output, record in result.records.items():
            self._store._io_write(self._store._metadata_path, record, output)
        for output in result.records:
            self._store._unmark_incomplete(output)

    def list_recent_outputs(self, since: float) -> Iterator[Result]:
        """Yield the outputs whose records were written since a time, in seconds since 1970.

        Each is a result without wildcards, and has one output.
        """
        folder = Path(self._store._metadata_path)
        for file in folder.rglob("*"):
            if not file.is_file() or file.stat().st_mtime < since:  # most; the rest takes longer
                continue
            name = file.relative_to(folder)
            if not is_system_file(name):
                output = decode_output_name(name)
                record = self._store._io_read(self._store._metadata_path, output)
                yield Result(record.get("rule") or "", {}, {output: record}, [output])


def decode_output_name(file: Path) -> str:
    """Return the output that a file is about in a folder of Snakemake's.

    The file's name is that of the output in Base64, which folders cut into parts where it is too
    long. All parts but the last begin with @.
    """
    encoded = "".join(part.removeprefix("@") for part in file.parts)
    return urlsafe_b64decode(encoded).decode()
