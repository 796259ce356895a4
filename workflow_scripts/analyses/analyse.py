"""Compute one analysis of a paper from its trained runs: scores.csv, and the tables that its figures show."""

import argparse
import importlib
from dataclasses import replace
from pathlib import Path

from workflow_scripts.catalogue import (
    Catalogue,
    Run,
    display_runs,
    load_catalogue,
    load_config,
    parse_run,
    requested_runs,
    worst_protocol,
)
from workflow_scripts.errors import UserError
from workflow_scripts.files import read_json, replacing, write_json
from workflow_scripts.schema import nearest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--paper", required=True, help="folder of papers/")
    parser.add_argument("--analysis", required=True, help="name under `analyses` in the paper's displays.yaml")
    parser.add_argument("--scale", required=True)
    parser.add_argument("--runs", nargs="*", metavar="ID", help="instead of the runs that config.yaml asks for")
    parser.add_argument("--results", type=Path, required=True, metavar="DIR", help="has data/ and runs/ of the scale")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="gets scores.csv and further tables")


def main(args: argparse.Namespace) -> None:
    """Write `--out`, at once. A row of the entry's `runs` that the scale does not run is left out."""
    catalogue = load_catalogue()
    entry = entry_of(catalogue, args.paper, "analyses", args.analysis)
    runs = chosen_runs(catalogue, entry, args.scale, args.runs)

    import pandas

    from workflow_scripts.analyses.trained import TrainedRun
    from workflow_scripts.evaluation.scores import SCORE_COLUMNS

    trained = []
    for run in runs:
        folder = args.results / "runs" / str(run)
        protocol = read_json(folder / "run.json")["protocol"]
        trained.append(TrainedRun(run.task, run.method, run.variant, run.seed, protocol, folder, args.results / "data" / run.task))
    analysis = importlib.import_module(entry["module"]).analyse(trained, entry.get("options", {}))
    with replacing(args.out) as out:
        out.mkdir()
        scores = pandas.DataFrame(analysis.scores, columns=SCORE_COLUMNS)
        scores.to_csv(out / "scores.csv", index=False)
        for name, table in analysis.files.items():
            table.to_csv(out / f"{name}.csv", index=False, float_format="%.6g")
        protocols = [run.protocol for run in trained]
        facts = {
            "analysis": args.analysis,
            "paper": args.paper,
            "scale": args.scale,
            "module": entry["module"],
            "options": entry.get("options", {}),
            "runs": [str(run) for run in runs],
            "protocol": worst_protocol(*protocols) if protocols else "",
            "notes": analysis.notes,
        }
        write_json(out / "analysis.json", facts)
