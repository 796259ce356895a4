"""Compute one analysis of a paper from its trained runs: scores.csv, and the tables that its figures show."""

import argparse
import importlib
from pathlib import Path

from workflow_scripts.catalogue import (
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
    """Write `--out`, at once, from those runs of the analysis that the scale asks for."""
    catalogue = load_catalogue()
    if args.paper not in catalogue.papers:
        raise UserError(f"no paper '{args.paper}' in papers/; {nearest(args.paper, catalogue.papers)}")
    analyses = catalogue.papers[args.paper].analyses
    if args.analysis not in analyses:
        known = nearest(args.analysis, analyses)
        raise UserError(f"papers/{args.paper}/displays.yaml: no analysis '{args.analysis}'; {known}")
    entry = analyses[args.analysis]
    if args.runs is None:
        config = load_config().model_copy(update={"scale": args.scale, "papers": [args.paper]})
        asked = requested_runs(catalogue, config)
    else:
        asked = {parse_run(catalogue, run): [args.paper] for run in args.runs}
    runs = display_runs(entry, asked)

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
