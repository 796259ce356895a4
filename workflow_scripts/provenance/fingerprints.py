"""Fingerprint tables, figures and claims by the catalogue and the papers.

Other jobs are fingerprinted in `spec_fingerprints`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from workflow_scripts.common.files import digest
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.display_schema import Display, FigureDisplay, FileEntry
from workflow_scripts.config.displays import (
    read_caption,
    select_display_runs,
    select_published_rows,
)
from workflow_scripts.config.requested import list_paper_runs, select_claim
from workflow_scripts.config.schema import Config
from workflow_scripts.config.specs import list_ancestors
from workflow_scripts.provenance.code import PACKAGE
from workflow_scripts.provenance.planned_seeds import collect_planned_seeds
from workflow_scripts.provenance.spec_fingerprints import Fingerprint


def fingerprint_display(
    catalogue: Catalogue, paper: str, name: str, runs: Iterable[Run], scale: str
) -> Fingerprint:
    """Fingerprint a table or a figure that shows `runs`. Their scores are input files."""
    display = catalogue.papers[paper].displays[name]
    runs = list(runs)
    spec = {"entry": display.make_json(), "caption": read_caption(catalogue, paper, name)}
    planned_seeds = describe_planned_seeds(catalogue, paper, display, runs, scale)
    if planned_seeds:
        spec["planned_seeds"] = planned_seeds
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


def describe_planned_seeds(
    catalogue: Catalogue, paper: str, display: Display, runs: Iterable[Run], scale: str
) -> dict[str, list[int]]:
    """Return the planned seeds of each variant of which a display shows one of them.

    It shows no number of them before all planned seeds are scored. Of an analysis all variants
    count, whatever seeds it reads.
    """
    planned_seeds = collect_planned_seeds(catalogue, paper, scale)
    may_be_withheld = {
        run.variant_key for run in runs if run.seed in planned_seeds.get(run.variant_key, ())
    }
    for analysis in display.list_analyses():
        may_be_withheld |= catalogue.papers[paper].analyses[analysis].variants
    shown = sorted(may_be_withheld & planned_seeds.keys())
    return {str(variant): planned_seeds[variant] for variant in shown}


def find_seeds_of_other_plans(
    catalogue: Catalogue, paper: str, displays: Iterable[Display], runs: list[Run], scale: str
) -> dict[str, list[int]]:
    """Return variant -> planned seeds of what claims compare, by the plans of other papers alone.

    The paper's own plans are in the fingerprint of its claims.
    """
    seeds: dict[str, list[int]] = {}
    for display in displays:
        shown = select_display_runs(display, runs)
        seeds |= describe_planned_seeds(catalogue, paper, display, shown, scale)
    own = {str(variant) for variant in catalogue.papers[paper].list_planned_seeds(scale)}
    return {variant: seeds[variant] for variant in sorted(seeds) if variant not in own}


def fingerprint_claims(
    catalogue: Catalogue, papers: list[str], scale: str, runs: Iterable[Run]
) -> Fingerprint:
    """Fingerprint the verdicts on the claims of the chosen papers by the scores of `runs`."""
    runs = list(runs)
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
        other_seeds = find_seeds_of_other_plans(catalogue, key, displays.values(), runs, scale)
        if other_seeds:
            spec.setdefault("seeds_of_other_plans", {})[key] = other_seeds
    modules = (f"{PACKAGE}.reporting.claims.judging", f"{PACKAGE}.reporting.pages.overview")
    return Fingerprint(spec, modules)


def _describe_entries(entries: Mapping[str, FileEntry]) -> dict[str, Any]:
    """Return the JSON content of each entry by its name."""
    return {name: entry.make_json() for name, entry in entries.items()}


def digest_page_texts(catalogue: Catalogue, config: Config) -> str:
    """Return the digest of the texts of YAML files that the page of the results prints.

    Those of tables, figures and claims are left out: the page is written after each of them.
    """
    papers = {}
    for key in config.papers:
        paper = catalogue.papers[key]
        method = catalogue.methods.get(key.replace("_", "-"))
        papers[key] = {
            "title": paper.experiments.title,
            "citation": paper.experiments.citation,
            "name": paper.experiments.name,
            "method": method.title if method else None,
        }
    scale = catalogue.scales[config.scale].title
    return digest({"papers": papers, "scale": scale, "metrics": catalogue.meanings})


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
