"""Compute one analysis of a paper from its trained runs: scores.csv, and the tables that its figures show."""

import argparse
import importlib
from pathlib import Path

from workflow_scripts.catalogue import load_catalogue, worst_protocol
from workflow_scripts.displays import add_run_arguments, asked_runs, display_runs, find_entry
from workflow_scripts.files import read_json, replacing, write_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run_arguments(parser)
    parser.add_argument("--analysis", required=True, help="name under `analyses` in the paper's displays.yaml")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="gets scores.csv and further tables")


def main(args: argparse.Namespace) -> None:
    """Write `--out`, at once, from those runs of the analysis that the scale asks for."""
    catalogue = load_catalogue()
    entry = find_entry(catalogue, args.paper, "analysis", args.analysis)
    runs = display_runs(entry, asked_runs(catalogue, args.paper, args.scale, args.runs))

    # torch takes more than a second to import: a wrong name should be said before.
    from workflow_scripts.analyses.trained import TrainedRun
    from workflow_scripts.evaluation.scores import write_scores

    trained = []
    for run in runs:
        folder = args.results / "runs" / str(run)
        protocol = read_json(folder / "run.json")["protocol"]
        trained.append(
            TrainedRun(run.task, run.method, run.variant, run.seed, protocol, folder, args.results / "data" / run.task)
        )
    options = entry.get("options", {})
    analysis = importlib.import_module(entry["module"]).analyse(trained, options)
    with replacing(args.out) as out:
        out.mkdir()
        write_scores(out / "scores.csv", analysis.scores)
        for name, table in analysis.files.items():
            table.to_csv(out / f"{name}.csv", index=False, float_format="%.6g")
        facts = {
            "paper": args.paper,
            "analysis": args.analysis,
            "scale": args.scale,
            "module": entry["module"],
            "options": options,
            "runs": [str(run) for run in runs],
            "protocol": worst_protocol(*(run.protocol for run in trained)) if trained else None,
            "notes": analysis.notes,
        }
        write_json(out / "analysis.json", facts)
