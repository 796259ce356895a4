"""Draw the figures of an export again from its scores, and compare the values that they draw."""

from dataclasses import dataclass

from workflow_scripts.common.files import MissingFileError, read_csv
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.display_schema import FigureDisplay
from workflow_scripts.config.displays import select_display_runs
from workflow_scripts.reporting.committed.recomputing import Fault, list_committed_papers
from workflow_scripts.reporting.committed.restoring import RestoredExport, list_counted_runs
from workflow_scripts.reporting.figures.figure import draw_figure
from workflow_scripts.reporting.pages.verify import find_text_faults


@dataclass
class ComparedFigures:
    """Figures of an export next to those drawn from its scores.

    equal: number of figures whose values are equal. unknown: number of figures of more than scores,
    such as learning curves and further tables of analyses. faults: of each other figure.
    """

    equal: int
    unknown: int
    faults: list[Fault]


def compare_figures(restored: RestoredExport) -> ComparedFigures:
    """Compare the CSV of each figure that an export has."""
    compared = ComparedFigures(0, 0, [])
    for paper in list_committed_papers(restored):
        runs = list_counted_runs(restored, paper).others
        displays = restored.catalogue.papers[paper].select_shown_displays(runs)
        for name, display in displays.items():
            file = restored.export.figure(paper, name).csv
            if not isinstance(display, FigureDisplay) or not file.exists():
                continue
            shown_runs = select_display_runs(display, runs)
            drawn = None
            if has_analysed_scores(restored, paper, display):
                drawn = draw_values(restored, paper, name, shown_runs)
            if drawn is None:
                compared.unknown += 1
                continue
            texts = find_text_faults(file, drawn)
            compared.equal += not texts
            compared.faults += [Fault(f"{paper}/{name}", text) for text in texts]
    return compared


def has_analysed_scores(restored: RestoredExport, paper: str, display: FigureDisplay) -> bool:
    """Whether the export has scores of each analysis that a figure shows."""
    analyses = display.list_analyses()
    return all(read_csv(restored.results.analysis(paper, name).scores) for name in analyses)


def draw_values(restored: RestoredExport, paper: str, name: str, runs: list[Run]) -> str | None:
    """Return the values that a figure draws; None if it needs more than scores."""
    try:
        return draw_figure(restored.get_paper_results(paper), name, runs).csv
    except MissingFileError:
        return None
