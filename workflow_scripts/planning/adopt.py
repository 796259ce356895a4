"""Take over results that came without Snakemake's records: copied from a cluster, unpacked, or of a killed workflow.

Snakemake would take them as current whatever they are. Here each is held against what would be made now: what agrees is
recorded as current, and what does not is moved to results/<scale>/not-adopted/ and so made again. Where runs came
without their prepared data, the data are made first: run.json has their digest, and equal sources give equal bytes.

The same helps where the code that prepares data has changed, and the data perhaps have not: Snakemake would make all
that descends from them again. With --remake-data its records of these are dropped first.
"""

import argparse
import os
import socket
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from workflow_scripts.checking import read_entries
from workflow_scripts.errors import UserError
from workflow_scripts.files import read_json
from workflow_scripts.planning.records import environment, is_recorded, record_path, snakemake
from workflow_scripts.planning.versions import RUNS, other_versions
from workflow_scripts.running import RECORD, read

SCALES = Path("catalogue/scales.yaml")
# By rule, in the order in which data flow: the manifest in the folder of a result.
MANIFESTS = {
    "prepare": "data/*/dataset.json",
    "search": "search/*/*/*/chosen.json",
    "train": "runs/*/*/*/*/run.json",
    "evaluate": "runs/*/*/*/*/eval/evaluation.json",
    "candidates": "candidates/*/candidates.json",
    "intervene": "runs/*/*/*/*/interventions/intervention.json",
}
# Made again from the others in little time.
DERIVED = (
    "analyses/*/*/analysis.json",
    "tables/*/*.*",
    "figures/*/*.*",
    "claims.*",
    "claim_sides.csv",
    "overview.*",
    "config.json",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    parser.add_argument(
        "--remake-data",
        action="store_true",
        help="make data again whose code has changed; what was made from them stays where they come out the same",
    )


def main(args: argparse.Namespace) -> None:
    """Adopt or move aside. Says nothing when every result has a record. Raises UserError while ./reproduce works here,
    but for the one that calls this: results of its jobs have no record until these have ended."""
    at_work = read()
    if at_work and not args.dry_run and not at_work.dead() and at_work.process != str(os.getppid()):
        known = "" if at_work.host == socket.gethostname() else f", or delete {RECORD} if it was killed there"
        raise UserError(f"./reproduce works in this folder ({at_work}); call this when it has ended{known}")
    # No other folder of results/ is a scale's: a copy that somebody keeps beside them stays as it is.
    folders = [folder for scale in read_entries(SCALES) if (folder := Path("results", scale)).is_dir()]
    if args.remake_data:
        for folder in folders:
            forget(folder, args.dry_run)
    adopted: set[Path] = set()
    count = 0
    for rule, pattern in MANIFESTS.items():
        if rule in ("search", "train"):
            prepare(without_data(folders, adopted, rule), args.dry_run)
        agreeing = defaultdict(list)
        for file in unrecorded(folders, pattern):
            # Only where there is something to judge: ./reproduce asks each time.
            from workflow_scripts.planning.agreement import NO_DATA, judge, precision_of

            objection = judge(rule, file, adopted)
            if objection == NO_DATA and args.dry_run:
                adopted.add(file)  # the data will tell; what was made from it is judged as if they agreed
                continue
            if objection:
                print(f"{file}: {objection}; {'would be ' * args.dry_run}moved to {aside(file.parent)} and made again")
                move(file.parent, args.dry_run)
            else:
                adopted.add(file)
                agreeing[precision_of(rule, file)].append(file)
        for precision, files in agreeing.items():
            count += len(files)
            if not args.dry_run:
                record(rule, files, precision)
    if count:
        print(f"{count} results without records are what would be made now: {'would be ' * args.dry_run}adopted")
    derived = [file for pattern in DERIVED for file in unrecorded(folders, pattern)]
    for file in derived:
        move(file.parent if file.name == "analysis.json" else file, args.dry_run)
    if derived:
        print(f"{len(derived)} analyses, tables and figures without records {'would be ' * args.dry_run}made again")
    if note := other_versions(file for folder in folders for file in folder.glob(RUNS)):
        print(note)


def forget(folder: Path, dry_run: bool) -> None:
    """Drop Snakemake's records of a scale's data that other code would make now, and of what descends from them."""
    from workflow_scripts.planning.agreement import by_other_code

    changed = {
        file.parent.name for file in folder.glob(MANIFESTS["prepare"]) if is_recorded(file) and by_other_code(file)
    }
    tasks = set(changed)  # and those whose runs start from runs of these
    links = {
        (parent.parts[3], file.parts[3]) for file in folder.glob(MANIFESTS["train"]) if (parent := parent_of(file))
    }
    while more := {task for parent, task in links if parent in tasks} - tasks:
        tasks |= more
    found = [
        file
        for rule, pattern in MANIFESTS.items()
        for file in folder.glob(pattern)
        if file.parts[3] in (changed if rule == "prepare" else tasks) and is_recorded(file)
    ]
    for task in sorted(changed):
        print(f"{folder / 'data' / task}: the code that makes it has changed")
    if changed:
        print(f"{len(found) - len(changed)} results descend from them: {'would be ' * dry_run}compared with new data")
    for file in () if dry_run else reversed(found):  # data last: until then a second call finds what was left of these
        record_path(file).unlink()


def without_data(folders: list[Path], adopted: set[Path], rule: str) -> dict[Path, list[Path]]:
    """Manifests of data that are missing or were moved away, each with the results of `rule` made from it that agree in
    all else."""
    found = defaultdict(list)
    for file in unrecorded(folders, MANIFESTS[rule]):
        # As in `main`.
        from workflow_scripts.planning.agreement import NO_DATA, data_of, judge

        if judge(rule, file, adopted) == NO_DATA:
            found[data_of(file)].append(file)
    return found


def prepare(missing: dict[Path, list[Path]], dry_run: bool) -> None:
    """Let Snakemake make missing data. Raises UserError when it cannot; no run has been moved then."""
    for data, runs in missing.items():
        which = f"{data.parent} {'would be' if dry_run else 'is'} made first"
        print(f"{which}, to be compared with the data that {len(runs)} runs were made from", flush=True)
    if missing and not dry_run:
        # Seen by the user: it may take a download. Without a lock: if it is killed, the next call can go on.
        command = ["snakemake", "--logger=terminal", "--nolock", "--", *map(str, missing)]
        if subprocess.run([sys.executable, "-m", *command], env=environment()).returncode:
            runs = ", ".join(str(Path(*data.parts[:2], "runs", data.parts[3])) for data in missing)
            raise UserError(f"data cannot be made; mend that, or move their runs out of results/: {runs}")


def unrecorded(folders: list[Path], pattern: str) -> Iterator[Path]:
    """Files that Snakemake has no record of. Evaluations of a run that was moved away are not met any more."""
    for folder in folders:
        for file in sorted(folder.glob(pattern), key=generation):
            if not is_recorded(file):
                yield file


def generation(file: Path) -> tuple[int, Path]:
    """Sorts a run behind all that it descends from."""
    try:
        parent = parent_of(file)
        return (generation(parent)[0] + 1 if parent else 0), file
    except RecursionError:
        return 0, file


def parent_of(file: Path) -> Path | None:
    """The run.json of the run that the one of a run.json starts from; None also where that cannot be read."""
    try:
        origin = file.name == "run.json" and read_json(file)["spec"]["init"]
        return file.parents[4] / origin["run"] / "run.json" if origin and "run" in origin else None
    except (UserError, KeyError, TypeError):
        return None


def record(rule: str, files: list[Path], precision: str | None) -> None:
    """Let Snakemake record the files as made by it. It sees this one rule: no other job is touched along."""
    config = ["--config", f"precision={precision}"] if precision else []
    how = ("--quiet", "all", "--nolock", "--touch", "--force")
    rules = ("prepare", "prepare_large") if rule == "prepare" else (rule,)
    snakemake(*how, *config, "--allowed-rules", *rules, "--", *map(str, files))


def aside(path: Path) -> Path:
    """A free place under results/<scale>/not-adopted/."""
    scale = Path(*path.parts[:2])
    target = scale / "not-adopted" / path.relative_to(scale)
    number = 1
    while target.exists():
        number += 1
        target = target.with_name(f"{path.name}.{number}")
    return target


def move(path: Path, dry_run: bool) -> None:
    """Move a result out of Snakemake's sight. Nothing is deleted."""
    if not dry_run and path.exists():
        target = aside(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.rename(path, target)
