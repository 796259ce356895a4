"""Compare the runs that a table, a figure or an analysis was made of with those that it has now."""

from pathlib import PurePath

from workflow_scripts.common.files import read_mapping
from workflow_scripts.common.result_folders import RESULTS, ScaleFolder
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.displays import select_display_runs
from workflow_scripts.config.requested import list_paper_runs
from workflow_scripts.config.schema import Config
from workflow_scripts.provenance.unfinished import load_unfinished
from workflow_scripts.workflow.changes import compare_shown_runs
from workflow_scripts.workflow.job_specs import CatalogueSpecs
from workflow_scripts.workflow.result_patterns import locate_record


def find_run_changes(
    catalogue: Catalogue, config: Config, rule: str, wildcards: dict[str, str]
) -> list[str]:
    """Return sentences about the runs that a result does not show, and about those that it should.

    Which runs claims compare is in their fingerprint. Raises UserError for a file that cannot be
    read.
    """
    if rule in ("table", "figure"):
        before = _read_display_runs(rule, wildcards)
        now = _list_display_runs(catalogue, config, wildcards)
    elif rule == "analyse":
        folder = RESULTS.scale(wildcards["scale"]).analysis(
            wildcards["paper"], wildcards["analysis"]
        )
        if not folder.manifest.exists():
            return []
        before = read_mapping(folder.manifest, "runs")["runs"]
        now = _list_analysed_runs(catalogue, config, wildcards)
    else:
        return []
    return compare_shown_runs(before, now)


def _read_display_runs(rule: str, wildcards: dict[str, str]) -> list[str]:
    """Return the names of the runs whose files the record of a table or a figure has."""
    record = locate_record(rule, wildcards)
    runs: dict[str, None] = {}
    for name in read_mapping(record, "data_digest")["data_digest"]:
        folder, *parts = PurePath(name).parts
        if folder == ScaleFolder(record).runs.name:
            runs["/".join(parts[:4])] = None
    return list(runs)


def _list_display_runs(
    catalogue: Catalogue, config: Config, wildcards: dict[str, str]
) -> list[str]:
    """Return the names of the runs that a table or a figure shows, of those that are finished."""
    scale = wildcards["scale"]
    display = catalogue.papers[wildcards["paper"]].displays[wildcards["display"]]
    requested = list_paper_runs(catalogue, config, wildcards["paper"], scale)
    unfinished = load_unfinished(config, scale)
    results = RESULTS.scale(scale)
    runs = select_display_runs(display, requested)
    return [str(run) for run in runs if results.run(run).evaluation.scores not in unfinished]


def _list_analysed_runs(
    catalogue: Catalogue, config: Config, wildcards: dict[str, str]
) -> list[str]:
    """Return the names of the runs that an analysis reads."""
    specs = CatalogueSpecs(catalogue, config)
    analysis = specs.get_analysis(wildcards["paper"], wildcards["analysis"], wildcards["scale"])
    return [str(analysed.run) for analysed in analysis.runs]
