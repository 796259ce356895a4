"""What Snakemake would run, as data, and what it has recorded about the files that it made."""

import json
import os
import re
import subprocess
import sys
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

from workflow_scripts.errors import UserError
from workflow_scripts.files import read_json

METADATA = Path(".snakemake/metadata")
INCOMPLETE = Path(".snakemake/incomplete")  # marks of the same names, while a job works
NAME_MAX = 255
NO_RULE = re.compile(r"^No rule to produce (.+) \(if you use", re.MULTILINE)


def record_path(file: str | Path, folder: Path = METADATA) -> Path:
    """Where Snakemake keeps its record of an output: the name in base64, cut into folders where it is too long."""
    name = urlsafe_b64encode(str(file).encode()).decode()
    *folders, last = (name[i : i + NAME_MAX - 1] for i in range(0, len(name), NAME_MAX - 1))
    return folder.joinpath(*(f"@{part}" for part in folders), last)


def is_recorded(file: str | Path) -> bool:
    """Whether Snakemake has a record of the file as it is, not as it was before a job whose end it did not see."""
    return record_path(file).exists() and not record_path(file, INCOMPLETE).exists()


def read_record(file: str | Path) -> dict[str, Any] | None:
    """Snakemake's record of an output: params, input, input_checksums, shellcmd and more; None if it has none."""
    path = record_path(file)
    return read_json(path) if path.exists() else None


def environment() -> dict[str, str]:
    """Where Snakemake finds the loggers of profiles/logger, and its jobs this Python, as under ./reproduce."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return os.environ | {"PATH": path, "PYTHONPATH": f"{Path('profiles/logger').resolve()}"}


# With --touch Snakemake waits a tenth of a second behind each job, so that files differ in time: they do without.
SNAKEMAKE = (
    "from snakemake import cli; from snakemake.executors import touch; touch.Executor.SLEEPING_TIME = 0.001; cli.main()"
)


def snakemake(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Snakemake of this environment. Raises UserError with its message when it fails."""
    command = [sys.executable, "-c", SNAKEMAKE, "--logger=plan", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment())
    if done.returncode != 0:
        if found := NO_RULE.search(done.stderr):
            where = "catalogue/ and papers/ name what can be made; settings go behind --config"
            raise UserError(f"no rule makes {found[1]}; {where}")
        said = [line for line in done.stderr.splitlines() if line.strip()]
        raise UserError(f"snakemake {' '.join(arguments[:3])} failed: {said[-1] if said else done.returncode}")
    return done


def jobs_of_dry_run(*arguments: str) -> list[dict[str, Any]]:
    """The jobs that Snakemake would run: rule, wildcards, input, output, command, reason. Those without output are left
    out."""
    lines = snakemake("--dry-run", *arguments).stdout.splitlines()
    jobs = [json.loads(line) for line in lines if line.startswith("{")]
    return [job for job in jobs if job["output"]]


def read_overrides(overrides: list[str]) -> dict[str, Any]:
    """`--config` of Snakemake, `key=value` with values in YAML, as a dictionary."""
    import yaml

    pairs = (override.partition("=") for override in overrides)
    return {key: yaml.safe_load(value) for key, _, value in pairs}
