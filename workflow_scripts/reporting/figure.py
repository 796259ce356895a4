"""Draw one figure of a paper: SVG, PNG and the plotted data as CSV."""

import argparse
import importlib
from pathlib import Path

from workflow_scripts.catalogue import load_catalogue, worst_protocol
from workflow_scripts.displays import add_run_arguments, asked_runs, display_runs, find_entry, intervened
from workflow_scripts.files import replacing
from workflow_scripts.reporting.cells import read_evidence
from workflow_scripts.reporting.spec import display_analyses

# Below a figure: how far what it shows is from the paper's own setting.
FOOTERS = {
    "paper": "",
    "reduced": "Scale {scale}: smaller models, data or schedules than the paper's",
    "stand_in": "Scale {scale}: some data are made up; the figure only shows that every step works",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run_arguments(parser)
    parser.add_argument("--display", required=True, help="a figure of the paper's displays.yaml")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="gets <display>.svg, .png and .csv")


def main(args: argparse.Namespace) -> None:
    """Write the three files. A panel whose runs the scale does not ask for says so."""
    catalogue = load_catalogue()
    display = find_entry(catalogue, args.paper, "figure", args.display)
    runs = display_runs(display, asked_runs(catalogue, args.paper, args.scale, args.runs))
    evidence = read_evidence(
        catalogue, args.paper, args.scale, runs, display_analyses(display), args.results, intervened([display])
    )

    # matplotlib takes a second to import: a wrong name should be said before.
    from workflow_scripts.reporting.figures.inputs import Inputs
    from workflow_scripts.reporting.figures.style import save, style

    tables = [*evidence.scores.values(), *evidence.analyses.values()]
    protocol = worst_protocol("paper", *(row["protocol"] for table in tables for row in table))
    with style():
        figure, plotted = importlib.import_module(display["module"]).draw(Inputs(display, runs, args.results, evidence))
        save(figure, args.out, args.display, FOOTERS[protocol].format(scale=args.scale))
    with replacing(args.out / f"{args.display}.csv") as temporary:
        plotted.assign(protocol=protocol).to_csv(temporary, index=False, float_format="%.6g")
