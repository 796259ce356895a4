"""Copies of the project, and what Snakemake says it would run there."""

import csv
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.limits import HANGS

ROOT = Path(__file__).parents[2]
# What a person may have set who runs the tests: a mirror, a cluster, a profile, colours.
SETTINGS = (
    "RECOMPOSE_MIRROR",
    "RECOMPOSE_SLURM_CONF",
    "SNAKEMAKE_PROFILE",
    "FORCE_COLOR",
    "SLURM_CONF",
)
PARTS = (
    "README.md",
    "catalogue",
    "config.yaml",
    "envs",
    "papers",
    "profiles",
    "pyproject.toml",
    "reproduce",
    "rules",
    "Snakefile",
    "workflow_scripts",
)

# Written by the first call of ./reproduce whose files have no problem.
CHECKED = ".snakemake/checked"

# The run that tests make for real.
RUN = "scan-jump-x2/transformer/default/seed-1"
DATA = "results/demo/data/scan-jump-x2"
TRAINED = f"results/demo/runs/{RUN}/run.json"
SCORES = f"results/demo/runs/{RUN}/eval/scores.csv"


@contextmanager
def plain_environment() -> Iterator[None]:
    """Nothing of the person who runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        for name in SETTINGS:
            patch.delenv(name, raising=False)
        yield


@dataclass(frozen=True)
class Project:
    """A copy of the project in a folder of its own, with the environment of this one."""

    root: Path

    def reproduce(self, *arguments: str, **options) -> subprocess.CompletedProcess[str]:
        """Run ./reproduce; stdout and stderr are text."""
        return subprocess.run(
            ["./reproduce", *arguments],
            cwd=self.root,
            capture_output=True,
            text=True,
            timeout=HANGS,
            **options,
        )

    def make(self, *arguments: str, **options) -> subprocess.CompletedProcess[str]:
        """Run ./reproduce, which must succeed."""
        done = self.reproduce(*arguments, **options)
        assert done.returncode == 0, done.stderr
        return done

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `python -m workflow_scripts` with the arguments."""
        python = str(self.root / ".venv/bin/python")
        command = [python, "-m", "workflow_scripts", *arguments]
        return subprocess.run(command, cwd=self.root, capture_output=True, text=True, timeout=HANGS)

    def change_code(self, file: str) -> None:
        """Add a line to a module of the package."""
        path = self.root / "workflow_scripts" / file
        path.write_text(path.read_text() + "\nCHANGED = 1\n")

    def edit(self, file: str, old: str, new: str) -> None:
        """Replace the only occurrence of `old` in a file."""
        path = self.root / file
        text = path.read_text()
        assert text.count(old) == 1, f"{file} has {old!r} {text.count(old)} times"
        path.write_text(text.replace(old, new))

    def add_paper(self, files: dict[str, str]) -> None:
        """Add the paper `mine`, and make it the only one. files: name -> content."""
        folder = self.root / "papers/mine"
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_text(content)
        with self.edited("config.yaml") as config:
            config["papers"] = ["mine"]

    def set_demo_steps(self, steps: int) -> None:
        """Change the number of steps of the demo's trainings, on SCAN and elsewhere."""
        for file, usual in (("kinds.yaml", 100), ("scan.yaml", 500)):
            self.edit(f"catalogue/tasks/{file}", f"max_steps: {usual},", f"max_steps: {steps},")

    @contextmanager
    def edited(self, file: str) -> Iterator[Any]:
        """The content of a YAML file, without shared parts; what the block makes of it is written
        back.
        """
        path = self.root / file
        content = json.loads(json.dumps(yaml.safe_load(path.read_text())))
        yield content
        # the order of axes is that of rows
        path.write_text(yaml.safe_dump(content, sort_keys=False))

    def planned(self, *arguments: str) -> set[tuple[str, str]]:
        """(rule, output file) of every output that Snakemake itself plans to make, by `snakemake
        --summary`.
        """
        snakemake = str(self.root / ".venv/bin/snakemake")
        made = subprocess.run(
            [snakemake, "--summary", *arguments],
            cwd=self.root,
            capture_output=True,
            text=True,
            timeout=HANGS,
        )
        assert made.returncode == 0, made.stderr
        rows = csv.DictReader(made.stdout.splitlines(), delimiter="\t")
        return {(row["rule"], row["output_file"]) for row in rows if row["plan"] != "no update"}


def pretend(project: Project, *targets: str) -> None:
    """Let Snakemake record every file that the targets need, without content, as made."""
    for _, name in project.planned(*targets):
        file = project.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{}" if file.suffix == ".json" else "")
    record_as_made(project, *targets)


def record_as_made(project: Project, *targets: str) -> None:
    """Of files that are there."""
    environment = os.environ | {"PATH": f"{project.root / '.venv/bin'}:{os.environ['PATH']}"}
    command = [".venv/bin/snakemake", "--quiet", "all", "--touch", "--forceall", *targets]
    done = subprocess.run(
        command, cwd=project.root, env=environment, capture_output=True, text=True, timeout=HANGS
    )
    assert done.returncode == 0, done.stderr


def copied(target: Path) -> Project:
    """The project without its results. What Python has compiled comes along, but for what is just
    being written, and so does the record that its files have no problem.
    """
    target.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, target / part, ignore=shutil.ignore_patterns("*.pyc.*", ".*"))
        else:
            shutil.copy2(source, target / part)
    (target / ".venv").symlink_to(ROOT / ".venv")
    if (ROOT / CHECKED).exists():
        (target / CHECKED).parent.mkdir()
        shutil.copy2(ROOT / CHECKED, target / CHECKED)
    return Project(target)


def add_demo(project: Project) -> None:
    """Copy the demo with the times of its files and Snakemake's records of it."""
    for folder in ("results/demo", "results/code", ".snakemake/metadata"):
        shutil.copytree(ROOT / folder, project.root / folder)


def whole_copy(project: Project, target: Path) -> Project:
    """A project with all that was made in it, times and Snakemake's records too."""
    shutil.copytree(project.root, target, symlinks=True, dirs_exist_ok=True)
    return Project(target)
