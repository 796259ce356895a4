"""Keep results before their jobs run again, and take them back when their settings return.

A result fits if Snakemake's record of it has the fingerprint that its job has now, and the inputs
that are there now, by their contents. It is put back with this record, as if just made: Snakemake
then finds it up to date, and reruns what was computed from the result that it replaces.
"""

import os
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_file, read_json, write_atomically, write_json
from workflow_scripts.common.result_folders import RESULTS, EarlierFolder
from workflow_scripts.common.scratch_folders import remove_leftovers
from workflow_scripts.common.validation import StrictModel, parse_as
from workflow_scripts.workflow.jobs import JobInputs
from workflow_scripts.workflow.result_patterns import locate_record
from workflow_scripts.workflow.snakemake_job import SnakemakeJob
from workflow_scripts.workflow.snakemake_records import Result, SnakemakeRecords

# In the order of the data flow. Tables, figures and claims take seconds.
KEPT_STAGES = ("prepare", "candidates", "search", "train", "evaluate", "intervene", "analyse")
FORCED = "Forced execution"  # Snakemake's reason with -R: the next result has the same settings
# How ./reproduce says what to do with results that fit: `restore`, or `count` in a dry run.
MODE = "RECOMPOSE_EARLIER"


class KeptEntry(StrictModel):
    """The content of entry.json.

    records: output -> Snakemake's record of it. files: path in the folder of the job -> size and
    time of the last change, in nanoseconds. outputs: all of the job, also deleted ones; none in
    entries of earlier versions, which have all.
    """

    rule: str
    wildcards: dict[str, str]
    records: dict[str, dict[str, Any]]
    files: dict[str, list[int]]
    outputs: list[str] = []


@dataclass
class EarlierResults:
    """The results that are kept, of all scales."""

    limit: float  # bytes
    snakemake: SnakemakeRecords = field(default_factory=SnakemakeRecords)

    def keep_stale(self, jobs: Iterable[SnakemakeJob]) -> None:
        """Keep the results of jobs that are about to run again, as links to their files."""
        if not self.limit:
            return
        with suppress(OSError):  # a file system without hard links, or a full one
            for job in jobs:
                if job.stage in KEPT_STAGES and FORCED not in job.reason:
                    result = self.snakemake.read(job.rule, job.wildcards, job.outputs)
                    if result:
                        self.keep(result)
        remove_oldest(self.limit)

    def can_keep(self, result: Result) -> bool:
        """Whether `keep` keeps a result: it says what made it, and is not larger than the limit.

        What --touch has accepted may have the name of another result that is kept.
        """
        if not _has_own_record(result):
            return False
        return _locate_kept(result).entry.exists() or result.size <= self.limit

    def keep(self, result: Result) -> bool:
        """Link the files of a result, unless it is kept already; return whether it is kept then."""
        if not self.can_keep(result):
            return False
        folder = _locate_kept(result)
        if folder.entry.exists():
            return True
        files = result.list_files()
        stats = {str(file.relative_to(result.folder)): file.stat() for file in files}
        with write_atomically(folder.path) as temporary:
            copy = EarlierFolder(temporary)
            for name in stats:
                target = copy.files / name
                target.parent.mkdir(parents=True, exist_ok=True)
                os.link(result.folder / name, target)
            entry = KeptEntry(
                rule=result.rule,
                wildcards=result.wildcards,
                records=result.records,
                files={name: [stat.st_size, stat.st_mtime_ns] for name, stat in stats.items()},
                outputs=result.outputs,
            )
            write_json(copy.entry, entry.model_dump())
        return True

    def restore_fitting(
        self, jobs: JobInputs, is_needed: Callable[[Result], bool], *, is_dry_run: bool = False
    ) -> int:
        """Put results that fit in the place of those that are there; return how many.

        is_needed: whether the call is for a result. A dry run only counts them.
        """
        checksums = Checksums()
        restored = 0
        waiting = []
        for kept in list_kept():
            if is_needed(kept.result) and _matches_settings(kept.result, jobs):
                waiting.append(kept)
        waiting.sort(key=lambda kept: KEPT_STAGES.index(kept.result.stage))
        done: set[Path] = set()
        while True:
            wanted = (
                kept
                for kept in waiting
                if kept.result.folder not in done and self._is_wanted(kept, checksums, jobs)
            )
            chosen = next(wanted, None)
            if chosen is None:
                return restored
            done.add(chosen.result.folder)
            if is_dry_run:
                checksums.replace(chosen)
            elif self._restore(chosen):
                checksums.drop(chosen)
            else:
                continue
            restored += 1

    def _is_wanted(self, kept: "KeptResult", checksums: "Checksums", jobs: JobInputs) -> bool:
        """Whether a result has the present inputs, and the one in its place is not current."""
        result = kept.result
        if not checksums.match(result.inputs) or not kept.is_intact:
            return False
        present = self.snakemake.read_remaining(result.rule, result.wildcards, result.outputs)
        if present is None:
            return not self._is_of_unknown_making(result)
        if not self.can_keep(present):  # nothing is replaced that is not kept
            return False
        if len(present.records) < len(result.records):  # more of it has been deleted
            return True
        return not (_matches_settings(present, jobs) and checksums.match(present.inputs))

    def _is_of_unknown_making(self, result: Result) -> bool:
        """Whether there is a result of which Snakemake has no record, as of one that was copied.

        What a job or `_restore` has left unfinished may be replaced.
        """
        outputs = [output for output in result.outputs if Path(output).exists()]
        return bool(outputs) and not self.snakemake.is_any_incomplete(outputs)

    def _restore(self, kept: "KeptResult") -> bool:
        """Put a kept result in its place, and keep the one that is there, or what is left of it.

        Returns whether that was possible; else the one that is there stays.
        """
        result = kept.result
        present = self.snakemake.read_remaining(result.rule, result.wildcards, result.outputs)
        if present:
            try:
                if not self.keep(present):
                    return False
            except OSError:  # such as a full disk
                return False
        self.snakemake.start(result)
        for file in (present or result).list_files():
            file.unlink()
        for name in kept.entry.files:
            target = result.folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(kept.folder.files / name, target)
            os.utime(target)  # newer than what was made of the other result
        self.snakemake.finish(result)
        shutil.rmtree(kept.folder.path)
        return True


@dataclass(frozen=True)
class KeptResult:
    """A result that is kept, and where."""

    folder: EarlierFolder
    entry: KeptEntry

    @property
    def result(self) -> Result:
        """The result."""
        entry = self.entry
        outputs = entry.outputs or list(entry.records)
        return Result(entry.rule, entry.wildcards, entry.records, outputs)

    @property
    def is_intact(self) -> bool:
        """Whether no file of it has been changed since it was kept."""
        for name, stamp in self.entry.files.items():
            try:
                stat = (self.folder.files / name).stat()
            except OSError:
                return False
            if [stat.st_size, stat.st_mtime_ns] != stamp:
                return False
        return True


class Checksums:
    """The sha256 of inputs as they are now, or as a dry run would have them."""

    def __init__(self) -> None:
        self.known: dict[str, str | None] = {}

    def find(self, name: str) -> str | None:
        """Return the sha256 of a file; None if it is not there."""
        if name not in self.known:
            self.known[name] = hash_file(name) if Path(name).is_file() else None
        return self.known[name]

    def match(self, inputs: dict[str, str]) -> bool:
        """Whether the inputs that are there have these checksums. Others may be deleted."""
        return all(self.find(name) in (None, checksum) for name, checksum in inputs.items())

    def replace(self, kept: KeptResult) -> None:
        """Regard the files of a result as being in their place."""
        for name in kept.entry.files:
            file = kept.folder.files / name
            if not name.endswith(".safetensors"):
                self.known[str(kept.result.folder / name)] = hash_file(file)

    def drop(self, kept: KeptResult) -> None:
        """Forget the checksums of files that were replaced."""
        for name in kept.entry.files:
            self.known.pop(str(kept.result.folder / name), None)


def restore_earlier(
    limit: float,
    jobs: JobInputs,
    find_targets: Callable[[], Collection[str]],
    list_jobs: Callable[[], Iterable[SnakemakeJob]],
) -> None:
    """Put results that fit in their places if ./reproduce asks for it, and say how many.

    find_targets: returns the files and rules that the call names. list_jobs: lists the jobs of a
    call that names none. A dry run changes nothing.
    """
    mode = os.environ.get(MODE)
    if not mode or not limit or not list_earlier_folders():
        return
    is_needed = select_needed(find_targets(), list_jobs)
    count = EarlierResults(limit).restore_fitting(jobs, is_needed, is_dry_run=mode == "count")
    if mode != "count":
        remove_oldest(limit)
    if count == 0:
        return
    line = "1 earlier result fits" if count == 1 else f"{count} earlier results fit"
    if mode == "count":
        them = "it" if count == 1 else "them"
        line += f"; ./reproduce takes {them} back first, and runs fewer jobs than -n lists"
    else:
        line += " and is taken back" if count == 1 else " and are taken back"
    print(line, file=sys.stderr, flush=True)


def select_needed(
    targets: Collection[str], list_jobs: Callable[[], Iterable[SnakemakeJob]]
) -> Callable[[Result], bool]:
    """Return a function that tells whether a call with these targets needs a result.

    Which results a file needs is not known before Snakemake has planned its jobs, so those of its
    scale count as needed. Rules need those of the jobs that `list_jobs` lists.
    """
    files = [target for target in targets if "/" in target]
    folders = {Path(file).parts[:2] for file in files}
    names = set()
    if len(files) < len(targets) or not targets:
        names = {(job.stage, frozenset(job.wildcards.items())) for job in list_jobs()}

    def is_needed(result: Result) -> bool:
        is_of_scale = result.folder.parts[:2] in folders
        return is_of_scale or (result.stage, frozenset(result.wildcards.items())) in names

    return is_needed


def remove_oldest(limit: float) -> tuple[int, int]:
    """Remove the results that were kept first, until the rest is not larger than this.

    Return how many were removed, and their bytes. What killed processes were keeping is removed,
    too.
    """
    for scale in RESULTS.list_scales():
        remove_leftovers(scale.earlier_results)
    folders = list_earlier_folders()
    sizes = {folder: _measure(folder) for folder in folders}
    rest = sum(sizes.values())
    removed = 0
    for folder in sorted(folders, key=lambda folder: folder.entry.stat().st_mtime_ns):
        if rest <= limit:
            break
        shutil.rmtree(folder.path)
        rest -= sizes[folder]
        removed += 1
    return removed, sum(sizes.values()) - rest


def list_earlier_folders() -> list[EarlierFolder]:
    """List the folders of the results that are kept, of all scales."""
    folders = []
    for scale in RESULTS.list_scales():
        folders += scale.list_earlier()
    return folders


def list_kept() -> Iterator[KeptResult]:
    """Yield the results that are kept, the newest first."""
    folders = list_earlier_folders()
    for folder in sorted(folders, key=lambda folder: -folder.entry.stat().st_mtime_ns):
        yield KeptResult(folder, parse_as(KeptEntry, read_json(folder.entry), folder.entry))


def _locate_kept(result: Result) -> EarlierFolder:
    """Return where a result is kept, or would be."""
    return RESULTS.scale(result.wildcards["scale"]).earlier(result.key)


def _measure(folder: EarlierFolder) -> int:
    files = read_json(folder.entry)["files"]
    return sum(size for size, _ in files.values())


def _has_own_record(result: Result) -> bool:
    """Whether the record in the folder is of the same making as Snakemake's.

    It is not after --touch.
    """
    return result.is_as_recorded_by(locate_record(result.stage, result.wildcards))


def _matches_settings(result: Result, jobs: JobInputs) -> bool:
    """Whether a result was made with the settings and the code that its job has now."""
    try:
        params = jobs.list_identifying_params(result.rule, result.wildcards)
    except (UserError, KeyError):  # the job is gone
        return False
    return all(repr(param) in result.params for param in params)
