"""The scores by seed of which the cells of a table are made."""

from pathlib import Path

from workflow_scripts.common.files import make_scratch_folder, read_mapping
from workflow_scripts.common.result_folders import ExportFolder, RunFolder, ScaleFolder
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.displays import find_table, select_display_runs
from workflow_scripts.reporting.committed.restoring import list_counted_runs, restore_export
from workflow_scripts.reporting.evidence.evidence import read_evidence
from workflow_scripts.reporting.evidence.paper_results import PaperResults
from workflow_scripts.reporting.tables.cells import Cell, make_cells


class RestoredScores:
    """The scores of an export, in the files of a temporary folder that tables are made from.

    The folder is removed with the object.
    """

    def __init__(self, catalogue: Catalogue, export: ExportFolder):
        """Raise UserError if a file of the export is missing."""
        self._scratch = make_scratch_folder()
        self._restored = restore_export(catalogue, export, Path(self._scratch.name))

    def make_table_cells(self, paper: str, table: str) -> list[Cell]:
        """Make the cells of a table. Raises UserError for an unknown name."""
        display = find_table(self._restored.catalogue, paper, table)
        counted = list_counted_runs(self._restored, paper).others
        runs = select_display_runs(display, counted)
        evidence = read_evidence(self._restored.get_paper_results(paper), runs, [display])
        return make_cells(table, display, evidence)


def make_own_cells(
    catalogue: Catalogue, results: ScaleFolder, paper: str, table: str
) -> list[Cell]:
    """Make the cells of a table of results/<scale>, of the runs that its record names.

    Raises UserError for an unknown name, and if a file is missing.
    """
    display = find_table(catalogue, paper, table)
    record = results.table(paper, table).record
    runs: dict[Run, None] = {}
    for name in read_mapping(record, "data_digest")["data_digest"]:
        file = results.path / name
        if file.is_relative_to(results.runs):
            runs[Run.parse(RunFolder(file.parents[1]).name)] = None
    scale = results.path.resolve().name
    paper_results = PaperResults(catalogue, paper, scale, results)
    evidence = read_evidence(paper_results, select_display_runs(display, runs), [display])
    return make_cells(table, display, evidence)
