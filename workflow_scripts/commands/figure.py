"""Draw one figure of a paper: SVG, PNG and the plotted data as CSV."""

import argparse

from workflow_scripts.commands.table import (
    add_display_arguments,
    find_results,
    select_runs,
    write_display_record,
)
from workflow_scripts.common.files import write_text_file
from workflow_scripts.common.result_folders import FigureFiles
from workflow_scripts.config.displays import find_figure
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.reporting.figures.figure import RenderedFigure, draw_figure


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_display_arguments(parser, "figure", "svg, .png, .csv and .json")


def main(args: argparse.Namespace) -> None:
    """Write <display>.svg, .png, .csv and .json into the folder `--out`.

    A panel whose runs are not requested at the scale says so. Raises UserError for unknown names
    and missing scores.
    """
    catalogue = load_catalogue()
    display = find_figure(catalogue, args.paper, args.display)
    runs = select_runs(catalogue, display, args)
    drawn = draw_figure(find_results(catalogue, args), args.display, runs)
    files = FigureFiles(args.out, args.display)
    write_figure(drawn, files)
    write_display_record(catalogue, display, runs, args, files)


def write_figure(drawn: RenderedFigure, files: FigureFiles) -> None:
    """Write <display>.svg, .png and .csv."""
    # Imports matplotlib, which takes a second.
    from workflow_scripts.reporting.figures.style import save_figure, use_style

    with use_style():
        save_figure(drawn.figure, files, drawn.footer)
    write_text_file(files.csv, drawn.csv)
