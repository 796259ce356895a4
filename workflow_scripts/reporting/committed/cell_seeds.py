"""The scores by seed of which the cells of a table are made."""

import tempfile
from pathlib import Path

from workflow_scripts.common.files import read_mapping
from workflow_scripts.common.result_folders import ExportFolder, RunFolder, ScaleFolder
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.displays import find_table, select_display_runs
from workflow_scripts.reporting.committed.restoring import list_counted_runs, restore_export
from workflow_scripts.reporting.evidence.evidence import read_evidence
from workflow_scripts.reporting.evidence.paper_results import PaperResults
from workflow_scripts.reporting.tables.cells import Cell, make_cells


def make_exported_cells(
    catalogue: Catalogue, export: ExportFolder, paper: str, table: str
) -> list[Cell]:
    """Make the cells of a table of an export, from the scores of the export.

    Raises UserError for an unknown name, and if a file is missing.
    """
    display = find_table(catalogue, paper, table)
    with tempfile.TemporaryDirectory() as scratch:
        restored = restore_export(catalogue, export, Path(scratch))
        runs = select_display_runs(display, list_counted_runs(restored, paper).others)
        evidence = read_evidence(restored.get_paper_results(paper), runs, [display])
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
