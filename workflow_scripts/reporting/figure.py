"""Draw one figure of a paper: SVG, PNG and the plotted data as CSV."""

import argparse
import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from workflow_scripts.catalogue.loading import Catalogue, load_catalogue
from workflow_scripts.catalogue.runs import Run
from workflow_scripts.displays import add_run_arguments, asked_runs, display_runs, find_entry, intervened
from workflow_scripts.facts import of_display
from workflow_scripts.files import replacing
from workflow_scripts.protocols import worst_protocol
from workflow_scripts.reporting.evidence import read_evidence
from workflow_scripts.reporting.record import write_record
from workflow_scripts.reporting.spec import display_analyses

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Below a figure: how far what it shows is from the paper's own setting.
FOOTERS = {
    "paper": "",
    "reduced": "Scale {scale}: smaller models, data or schedules than the paper's",
    "stand_in": "Scale {scale}: some data are made up; the figure only shows that every step works",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run_arguments(parser)
    parser.add_argument("--display", required=True, help="a figure of the paper's displays.yaml")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="gets <display>.svg, .png, .csv and .json"
    )


def main(args: argparse.Namespace) -> None:
    """Write the files. A panel whose runs the scale does not ask for says so."""
    catalogue = load_catalogue()
    content = find_entry(catalogue, args.paper, "figure", args.display)
    runs = display_runs(content, asked_runs(catalogue, args.paper, args.scale, args.runs))
    drawn = draw_figure(catalogue, args.paper, args.display, args.scale, runs, args.results)

    from workflow_scripts.reporting.figures.style import save, style

    with style():
        save(drawn.figure, args.out, args.display, FOOTERS[drawn.protocol].format(scale=args.scale))
    with replacing(args.out / f"{args.display}.csv") as temporary:
        temporary.write_text(drawn.csv, encoding="utf-8")
    write_record(
        args.out / f"{args.display}.json",
        of_display(catalogue, "figure", args.paper, args.display),
        args.results,
        runs,
        intervened([content]),
        [f"{args.paper}/{name}" for name in display_analyses(content)],
        content.get("curves", False),
    )


@dataclass(frozen=True)
class Drawn:
    """A figure, the plotted data as the text of its CSV, and the worst protocol of what it shows."""

    figure: "Figure"
    csv: str
    protocol: str


def draw_figure(catalogue: Catalogue, paper: str, name: str, scale: str, runs: list[Run], results: Path) -> Drawn:
    """The figure of `runs`, from what lies under `results`, the folder of the scale."""
    display = catalogue.papers[paper].displays[name]
    evidence = read_evidence(catalogue, paper, scale, runs, display_analyses(display), results, intervened([display]))

    # matplotlib takes a second to import: a wrong name should be said before.
    from workflow_scripts.reporting.figures.inputs import Inputs
    from workflow_scripts.reporting.figures.style import style

    tables = [*evidence.scores.values(), *evidence.analyses.values()]
    protocol = worst_protocol("paper", *(row["protocol"] for table in tables for row in table))
    with style():
        figure, plotted = importlib.import_module(display["module"]).draw(Inputs(display, runs, results, evidence))
    text = plotted.assign(protocol=protocol).to_csv(index=False, float_format="%.6g", lineterminator="\n")
    return Drawn(figure, text, protocol)
