"""Summarise the trainings for the pages of the report."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from workflow_scripts.common.files import read_json
from workflow_scripts.config.catalogue import Catalogue, Run
from workflow_scripts.config.paths import data_folder, run_folder
from workflow_scripts.config.specs import find_parent_run, read_precision
from workflow_scripts.evaluation.protocol import find_worst_protocol
from workflow_scripts.reporting.tables.cells import MEASURED, Cell


@dataclass(frozen=True)
class TrainingSummary:
    """The seeds of one task, method and variant. `hours` is their sum; steps and parameters are those of one run."""

    name: str
    seeds: list[int]
    protocol: str
    steps: int
    parameters: int
    hours: float
    devices: list[str]

    @property
    def example(self) -> str:
        """Return one of the runs, for a command."""
        return f"{self.name}/seed-{self.seeds[0]}"


def list_trainings(catalogue: Catalogue, runs: Iterable[Run], scale: str) -> list[Run]:
    """Return the runs, and in the place of given weights the runs that trained them; models of the hub have none."""
    found = (find_parent_run(catalogue, run, scale) if run.weights else run for run in runs)
    return list(dict.fromkeys(filter(None, found)))


def summarise_runs(runs: Iterable[Run], results: Path) -> list[TrainingSummary]:
    """Summarise runs by task, method and variant from run.json and record.json. Raises UserError if one is missing."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault("/".join(run.unseeded), []).append(run)
    found = []
    for name, members in groups.items():
        made = [read_json(results / run_folder(run) / "run.json") for run in members]
        records = [read_json(results / run_folder(run) / "record.json") for run in members]
        seeds, protocol = sorted(run.seed for run in members), find_worst_protocol(*(run["protocol"] for run in made))
        hours = sum(record["seconds"] for record in records) / 3600
        devices = sorted({record["device_name"] for record in records})
        found.append(TrainingSummary(name, seeds, protocol, made[0]["steps"], made[0]["parameters"], hours, devices))
    return found


def describe_reduced_data(catalogue: Catalogue, cells: Iterable[Cell], results: Path) -> list[str]:
    """Describe the real data sets of measured cells that differ from the paper's, by dataset.json if there."""
    found = []
    for task in dict.fromkeys(cell.selection["task"] for cell in cells if cell.status == MEASURED):
        if (file := results / data_folder(task) / "dataset.json").exists():
            made = read_json(file)
            if made["protocol"] == "reduced" and made["notes"]:
                found.append(f"Data of {catalogue.tasks[task].title}, protocol reduced: {'; '.join(made['notes'])}.")
    return found


def describe_precision(runs: Iterable[Run], results: Path) -> list[str]:
    """Format `Trained in bf16.`, or the runs of each precision; empty without trainings."""
    found: dict[str, list[str]] = {}
    for run in runs:
        precision = read_precision(read_json(results / run_folder(run) / "run.json")["spec"])
        found.setdefault(precision, []).append("/".join(run.unseeded))
    if len(found) < 2:
        return [f"Trained in {precision}." for precision in found]
    told = (f"{name} in {precision}" for precision, names in sorted(found.items()) for name in dict.fromkeys(names))
    return [f"Precision differs: {', '.join(told)}."]
