"""The trainings whose scores a table shows, and what to know of them and their data."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from workflow_scripts.common.files import read_json
from workflow_scripts.config.catalogue import Catalogue, Run
from workflow_scripts.config.paths import data_folder, run_folder
from workflow_scripts.config.specs import find_parent_run, read_precision
from workflow_scripts.evaluation.protocol import find_worst_protocol
from workflow_scripts.reporting.tables.cells import MEASURED, Cell


def summarise_trainings(catalogue: Catalogue, runs: Iterable[Run], scale: str, results: Path) -> list[dict[str, Any]]:
    """Summarise the trainings of `runs` by variant, from run.json: steps and parameters are those of one run.

    Given weights count as the runs that trained them; models of the hub have none. Raises UserError without a run.json.
    """
    trained = (find_parent_run(catalogue, run, scale) if run.weights else run for run in runs)
    seeds: dict[str, list[int]] = defaultdict(list)
    for run in dict.fromkeys(filter(None, trained)):
        seeds["/".join(run.unseeded)].append(run.seed)
    found = []
    for name, of_variant in seeds.items():
        made = [read_json(results / run_folder(f"{name}/seed-{seed}") / "run.json") for seed in of_variant]
        summary = {"name": name, "seeds": sorted(of_variant), "steps": made[0]["steps"]}
        summary |= {"parameters": made[0]["parameters"], "precisions": {read_precision(run["spec"]) for run in made}}
        found.append(summary | {"protocol": find_worst_protocol(*(run["protocol"] for run in made))})
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


def describe_precision(trained: list[dict[str, Any]]) -> list[str]:
    """Format `Trained in bf16.`, or the runs of each precision; empty without trainings."""
    found = sorted((precision, summary["name"]) for summary in trained for precision in summary["precisions"])
    kinds = {precision for precision, _ in found}
    if len(kinds) < 2:
        return [f"Trained in {precision}." for precision in kinds]
    return [f"Precision differs: {', '.join(f'{name} in {precision}' for precision, name in found)}."]
