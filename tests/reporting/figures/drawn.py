"""The figures of the paper, drawn from runs with random weights."""

from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pandas
from matplotlib.figure import Figure

from tests.analyses.small_runs import ROOT, add_run
from workflow_scripts.__main__ import main
from workflow_scripts.common.plug_ins import FIGURES as FIGURE_MODULES
from workflow_scripts.common.plug_ins import parse_options
from workflow_scripts.common.result_folders import ScaleFolder
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.catalogue import parse_run
from workflow_scripts.config.display_schema import FigureDisplay
from workflow_scripts.config.displays import select_display_runs
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.provenance.unfinished import Unfinished
from workflow_scripts.reporting.evidence.evidence import read_evidence
from workflow_scripts.reporting.evidence.paper_results import PaperResults
from workflow_scripts.reporting.figures.figure import Inputs, RenderedFigure, draw_figure

PAPER = "sq_transformer"
DISPLAYS = load_catalogue(ROOT).papers[PAPER].displays
FIGURES = [name for name, display in DISPLAYS.items() if isinstance(display, FigureDisplay)]


@dataclass
class Results:
    """A folder of results with runs and the analyses made of them."""

    folder: Path
    runs: list[str]

    def add(self, *runs: str, accuracy: float = 12.5) -> None:
        for run in runs:
            add_run(self.folder, run, accuracy)
            self.runs.append(run)

    def command(self, name: str, what: str, out: Path) -> int:
        """Call `analyse` or `figure` (`name`) for the analysis or display `what`, at scale demo."""
        where = ["--scale", "demo", "--results", str(self.folder), "--out", str(out)]
        kind = {"analyse": "--analysis", "figure": "--display"}[name]
        return main([name, "--paper", PAPER, kind, what, *where, "--runs", *self.runs])

    def analyse(self, display: str) -> None:
        """Make the analyses that a figure reads."""
        for analysis in DISPLAYS[display].list_analyses():
            assert (
                self.command("analyse", analysis, self.folder / "analyses" / PAPER / analysis) == 0
            )

    def select_runs(self, display: str) -> list[Run]:
        runs = {parse_run(load_catalogue(ROOT), run): [PAPER] for run in self.runs}
        return select_display_runs(DISPLAYS[display], runs)

    def draw_unfinished(self, display: str, unfinished: Unfinished) -> RenderedFigure:
        """Draw a display of which something is not finished."""
        folder = ScaleFolder(self.folder)
        results = PaperResults(load_catalogue(ROOT), PAPER, "demo", folder, unfinished)
        return draw_figure(results, display, self.select_runs(display))

    def inputs(self, display: str) -> Inputs:
        catalogue, entry = load_catalogue(ROOT), DISPLAYS[display]
        runs = self.select_runs(display)
        folder = ScaleFolder(self.folder)
        results = PaperResults(catalogue, PAPER, "demo", folder)
        return Inputs(entry, runs, folder, read_evidence(results, runs, [entry]))


def draw(module: ModuleType, inputs: Inputs) -> tuple[Figure, pandas.DataFrame]:
    """Draw a figure with the options of its display."""
    display = inputs.display
    options = parse_options(display.module, FIGURE_MODULES, display.options, "displays.yaml", ())
    return module.draw(inputs, options)


def texts(figure: Figure) -> list[str]:
    """Every text of a figure, of its panels and legends."""
    return [
        text.get_text()
        for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))
        if text.get_text()
    ]


def overlapping(boxes: list, names: list[str]) -> list[tuple[str, str]]:
    """Names of the pairs of boxes that meet in more than a line."""
    found = []
    for i, (a, b) in enumerate(zip(boxes, names, strict=True)):
        for c, d in zip(boxes[:i], names[:i], strict=True):
            if (
                min(a.x1, c.x1) - max(a.x0, c.x0) > 0.01
                and min(a.y1, c.y1) - max(a.y0, c.y0) > 0.01
            ):
                found.append((b, d))
    return found


def numbers(table: pandas.DataFrame, column: str) -> list[float]:
    return table[column].astype(float).tolist()
