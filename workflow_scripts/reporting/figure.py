"""Draw one figure of a paper: SVG, PNG and the plotted data as CSV."""

import argparse
import importlib
from pathlib import Path

from workflow_scripts.catalogue import display_analyses, display_runs, load_catalogue, worst_protocol
from workflow_scripts.errors import UserError
from workflow_scripts.files import replacing
from workflow_scripts.reporting.cells import asked_runs, read_evidence
from workflow_scripts.schema import nearest

# Below a figure: how far what it shows is from the paper's own setting.
FOOTERS = {
    "paper": "",
    "reduced": "Scale {scale}: smaller models, data or schedules than the paper's",
    "stand_in": "Scale {scale}: some data are made up; the figure only shows that every step works",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--paper", required=True, help="folder of papers/")
    parser.add_argument("--display", required=True, help="a figure of the paper's displays.yaml")
    parser.add_argument("--scale", required=True)
    parser.add_argument("--runs", nargs="*", metavar="ID", help="instead of the runs that config.yaml asks for")
    parser.add_argument(
        "--results", type=Path, required=True, metavar="DIR", help="has runs/ and analyses/ of the scale"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="gets <display>.svg, .png and .csv")


def main(args: argparse.Namespace) -> None:
    """Write the three files. A panel whose runs the scale does not ask for says so."""
    catalogue = load_catalogue()
    if args.paper not in catalogue.papers:
        raise UserError(f"no paper '{args.paper}' in papers/; {nearest(args.paper, catalogue.papers)}")
    displays = catalogue.papers[args.paper].displays
    figures = [name for name, display in displays.items() if display["kind"] == "figure"]
    if args.display not in figures:
        raise UserError(
            f"papers/{args.paper}/displays.yaml: no figure '{args.display}'; {nearest(args.display, figures)}"
        )
    display = displays[args.display]
    runs = display_runs(display, asked_runs(catalogue, args.paper, args.scale, args.runs))
    evidence = read_evidence(catalogue, args.paper, args.scale, runs, display_analyses(display), args.results)

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
