"""Draw one figure of a paper: SVG, PNG and the plotted data as CSV."""

import argparse
from pathlib import Path

from workflow_scripts.common.files import write_atomically
from workflow_scripts.config.display_schema import display_analyses
from workflow_scripts.config.displays import add_run_arguments, asked_runs, display_runs, find_entry, intervened
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.provenance.fingerprints import fingerprint_display
from workflow_scripts.reporting.evidence.display_record import write_record
from workflow_scripts.reporting.figures.figure import draw_figure


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run_arguments(parser)
    parser.add_argument("--display", required=True, help="a figure of the paper's displays.yaml")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="gets <display>.svg, .png, .csv and .json"
    )


def main(args: argparse.Namespace) -> None:
    """Write the files. A panel whose runs are not requested at the scale says so."""
    catalogue = load_catalogue()
    content = find_entry(catalogue, args.paper, "figure", args.display)
    runs = display_runs(content, asked_runs(catalogue, args.paper, args.scale, args.runs))
    drawn = draw_figure(catalogue, args.paper, args.display, args.scale, runs, args.results)

    from workflow_scripts.reporting.figures.style import save_figure, use_style

    with use_style():
        save_figure(drawn.figure, args.out, args.display, drawn.footer)
    with write_atomically(args.out / f"{args.display}.csv") as temporary:
        temporary.write_text(drawn.csv, encoding="utf-8")
    write_record(
        args.out / f"{args.display}.json",
        fingerprint_display(catalogue, "figure", args.paper, args.display),
        args.results,
        runs,
        intervened([content]),
        [f"{args.paper}/{name}" for name in display_analyses(content)],
        content.get("curves", False),
    )
