"""A figure of a paper and the plotted data."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from workflow_scripts.common.plug_ins import import_function
from workflow_scripts.config.display_schema import list_display_analyses
from workflow_scripts.config.displays import find_intervened_variants
from workflow_scripts.config.loading import Catalogue
from workflow_scripts.config.runs import Run
from workflow_scripts.evaluation.protocol import find_worst_protocol
from workflow_scripts.reporting.evidence.evidence import read_evidence

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# Text below a figure, by protocol.
FOOTERS = {
    "paper": "",
    "reduced": "Scale {scale}: smaller models, data or schedules than the paper's",
    "stand_in": "Scale {scale}: some data are generated; the figure only shows that every step works",
}


@dataclass(frozen=True)
class RenderedFigure:
    """A figure, the plotted data as the text of its CSV, and the text below it."""

    figure: "Figure"
    csv: str
    footer: str


def draw_figure(
    catalogue: Catalogue, paper: str, name: str, scale: str, runs: list[Run], results: Path
) -> RenderedFigure:
    """Draw the figure of `runs` from the files under `results`, the folder of the scale."""
    display = catalogue.papers[paper].displays[name]
    draw = import_function(display["module"], "draw", "workflow_scripts.reporting.figures")
    evidence = read_evidence(
        catalogue, paper, scale, runs, list_display_analyses(display), results, find_intervened_variants([display])
    )

    # matplotlib takes a second to import, so errors in names are reported first.
    from workflow_scripts.reporting.figures.figure_inputs import Inputs
    from workflow_scripts.reporting.figures.style import use_style

    tables = [*evidence.scores.values(), *evidence.analyses.values()]
    protocol = find_worst_protocol("paper", *(row["protocol"] for table in tables for row in table))
    with use_style():
        figure, plotted = draw(Inputs(display, runs, results, evidence))
    text = plotted.assign(protocol=protocol).to_csv(index=False, float_format="%.6g", lineterminator="\n")
    return RenderedFigure(figure, text, FOOTERS[protocol].format(scale=scale))
