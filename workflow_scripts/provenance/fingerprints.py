"""Fingerprint tables, figures and claims by the catalogue and the papers.

Other jobs are fingerprinted in `spec_fingerprints`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from workflow_scripts.common.run_names import Run
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.display_schema import FigureDisplay, FileEntry
from workflow_scripts.config.displays import (
    read_caption,
    select_display_runs,
    select_published_rows,
)
from workflow_scripts.config.requested import list_paper_runs, select_claim
from workflow_scripts.config.schema import Config
from workflow_scripts.config.specs import list_ancestors
from workflow_scripts.provenance.code import PACKAGE
from workflow_scripts.provenance.spec_fingerprints import Fingerprint


def fingerprint_display(
    catalogue: Catalogue, paper: str, name: str, runs: Iterable[Run], scale: str
) -> Fingerprint:
    """Fingerprint a table or a figure that shows `runs`. Their scores are input files."""
    display = catalogue.papers[paper].displays[name]
    spec = {"entry": display.make_json(), "caption": read_caption(catalogue, paper, name)}
    if isinstance(display, FigureDisplay):
        # A figure may show the published numbers of another display.
        published = display.options.get("published", name).split("/")[0]
        spec["published"] = select_published_rows(catalogue, paper, {name, published})
        modules = (
            f"{PACKAGE}.reporting.figures.figure",
            f"{PACKAGE}.reporting.figures.{display.module}",
        )
        return Fingerprint(spec, modules)
    spec["published"] = select_published_rows(catalogue, paper, {name})
    spec["paper"] = catalogue.papers[paper].experiments.title
    titles = {}
    for part in (*display.rows, *display.columns):
        if part.task in catalogue.tasks:  # an audit's may be `all`
            titles[part.task] = catalogue.tasks[part.task].title
    # Notes under a table name the data of pre-trainings, too.
    one_of_each = {run.variant_key: run for run in runs}.values()
    for ancestor in list_ancestors(catalogue, one_of_each, scale):
        titles[ancestor.task] = catalogue.tasks[ancestor.task].title
    spec["titles"] = titles
    return Fingerprint(spec, (f"{PACKAGE}.reporting.tables.table",))


def fingerprint_claims(
    catalogue: Catalogue, papers: list[str], scale: str, runs: Iterable[Run]
) -> Fingerprint:
    """Fingerprint the verdicts on the claims of the chosen papers by the scores of `runs`."""
    spec: dict[str, Any] = {
        "claims": {},
        "displays": {},
        "published": {},
        "plans": {},
        "runs": sorted({str(run) for run in runs}),
        "scale": catalogue.scales[scale].model_dump(),
        "titles": {},
    }
    for key in papers:
        paper = catalogue.papers[key]
        displays = paper.select_claimed_displays()
        spec["claims"][key] = _describe_entries(paper.claims_by_name)
        spec["displays"][key] = _describe_entries(displays)
        spec["published"][key] = select_published_rows(catalogue, key, displays)
        spec["plans"][key] = {
            file: plan.model_dump(mode="json") for file, plan in paper.plans.items()
        }
        spec["titles"][key] = paper.experiments.title
    modules = (f"{PACKAGE}.reporting.claims.judging", f"{PACKAGE}.reporting.pages.overview")
    return Fingerprint(spec, modules)


def _describe_entries(entries: Mapping[str, FileEntry]) -> dict[str, Any]:
    """Return the JSON content of each entry by its name."""
    return {name: entry.make_json() for name, entry in entries.items()}


def fingerprint_report_job(
    catalogue: Catalogue, config: Config, rule: str, wildcards: dict[str, str]
) -> Fingerprint | None:
    """Fingerprint the job of a table, a figure, the claims or one claim; None for other rules."""
    if rule == "claim":
        paper = wildcards["paper"]
        config_of_claim = select_claim(config, paper, wildcards["claim"])
        runs_of_claim = list_paper_runs(catalogue, config_of_claim, paper, wildcards["scale"])
        return fingerprint_claims(catalogue, [paper], wildcards["scale"], runs_of_claim)
    if rule == "claims":
        scale = wildcards["scale"]
        runs: list[Run] = []
        for paper in config.papers:
            runs += list_paper_runs(catalogue, config, paper, scale)
        return fingerprint_claims(catalogue, config.papers, scale, runs)
    if rule in ("table", "figure"):
        paper, name, scale = wildcards["paper"], wildcards["display"], wildcards["scale"]
        display = catalogue.papers[paper].displays[name]
        requested = list_paper_runs(catalogue, config, paper, scale)
        shown = select_display_runs(display, requested)
        return fingerprint_display(catalogue, paper, name, shown, scale)
    return None
