"""Jobs that Snakemake takes for done although they are not.

Snakemake makes a missing file only for a job that must run, or by its name, and compares what a job is given with its
records only where every output has one. So it says "nothing to be done" of a display whose run was begun again and
failed, since the display made before is still there; and of results of an older workflow, which declared fewer outputs.
"""

import os
from base64 import urlsafe_b64decode
from pathlib import Path
from typing import Any

from workflow_scripts.errors import UserError
from workflow_scripts.files import read_json
from workflow_scripts.planning.records import METADATA, jobs_of_dry_run, record_path


def unfinished(arguments: list[str], half_made: bool) -> list[str]:
    """An output of each job that Snakemake, called with `arguments`, must be told to do, with --forcerun.

    To find the jobs that lack the record of an output all jobs must be looked at, which takes as long as a dry run:
    only where `half_made` says so. The rule `all` does without, since it names all outputs.
    """
    failed = failed_again()
    if not failed and not (half_made and METADATA.exists()):
        return []
    try:
        jobs = jobs_of_dry_run("--forceall", *arguments)
    except UserError:
        return []  # Snakemake will say it
    found = []
    for job in jobs:
        recorded = [record_path(file).exists() for file in job["output"]]
        if not failed.isdisjoint(job["output"]) or (any(recorded) and not all(recorded)):
            found.append(job["output"][0])
    return found


def failed_again() -> set[str]:
    """Files that are missing, and of which Snakemake's record is later than that of a file made from them: their job
    was begun again, and failed. A file that was only deleted has an earlier record: it is not missed."""
    records = [path for path in METADATA.glob("**/*") if path.is_file()]
    missing = {path: name for path in records if not os.path.exists(name := recorded_name(path))}
    ended = {name: record["endtime"] for path, name in missing.items() if (record := whole(path))}
    if not ended:
        return set()
    found = set()
    for record in filter(None, map(whole, records)):
        found |= {file for file in record["input"] if ended.get(file, 0) > record["endtime"]}
    return found


def whole(record: Path) -> dict[str, Any] | None:
    """A record; None where a Snakemake that was killed has left half of it, which the next one passes over too."""
    try:
        return read_json(record)
    except UserError:
        return None


def recorded_name(path: Path) -> str:
    """The output that a record is of; see record_path."""
    *folders, last = path.relative_to(METADATA).parts
    return urlsafe_b64decode("".join([*(folder.removeprefix("@") for folder in folders), last])).decode()
