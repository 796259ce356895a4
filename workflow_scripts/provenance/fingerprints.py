"""Fingerprint tables, figures and claims by the catalogue and the papers; see `spec_fingerprints`."""

from collections.abc import Iterable
from dataclasses import astuple
from functools import lru_cache
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_csv
from workflow_scripts.config.catalogue import Catalogue, Run
from workflow_scripts.config.display_schema import FigureDisplay
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.requested import list_requested_runs
from workflow_scripts.config.schema import Config
from workflow_scripts.provenance.code import PACKAGE
from workflow_scripts.provenance.spec_fingerprints import Fingerprint


def fingerprint_display(catalogue: Catalogue, paper: str, name: str) -> Fingerprint:
    """Fingerprint a table or a figure. The scores that it shows are input files."""
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
    tasks = {part.task for part in (*display.rows, *display.columns) if part.task is not None}
    known_tasks = tasks & catalogue.tasks.keys()  # an audit's may be `all`
    spec["titles"] = {task: catalogue.tasks[task].title for task in known_tasks}
    return Fingerprint(spec, (f"{PACKAGE}.reporting.tables.table",))


def read_caption(catalogue: Catalogue, paper: str, display: str) -> str:
    """Return the caption of a display in the report; its title if papers/<paper>/captions has none."""
    file = catalogue.root / "papers" / paper / "captions" / f"{display}.rst"
    if file.exists():
        return file.read_text().strip()
    return catalogue.papers[paper].displays[display].title


def fingerprint_claims(
    catalogue: Catalogue, papers: list[str], scale: str, runs: Iterable[str]
) -> Fingerprint:
    """Fingerprint the verdicts on the claims of the chosen papers by the scores of `runs`."""
    claims, displays, published, plans, titles = {}, {}, {}, {}, {}
    for key in papers:
        paper = catalogue.papers[key]
        claimed = paper.select_claimed_displays()
        claims[key] = {name: claim.make_json() for name, claim in paper.claims_by_name.items()}
        displays[key] = {name: display.make_json() for name, display in claimed.items()}
        published[key] = select_published_rows(catalogue, key, claimed)
        plans[key] = {file: plan.model_dump(mode="json") for file, plan in paper.plans.items()}
        titles[key] = paper.experiments.title
    spec = {
        "claims": claims,
        "displays": displays,
        "published": published,
        "plans": plans,
        "runs": sorted(set(runs)),
        "scale": catalogue.scales[scale].model_dump(),
        "titles": titles,
    }
    return Fingerprint(
        spec, (f"{PACKAGE}.reporting.claims.judging", f"{PACKAGE}.reporting.pages.overview")
    )


def fingerprint_report_job(
    catalogue: Catalogue, config: Config, rule: str, wildcards: dict[str, str]
) -> Fingerprint | None:
    """Fingerprint the job of a table, a figure or the claims; None for other rules."""
    if rule == "claims":
        scale = wildcards["scale"]
        runs = [
            str(run) for paper in config.papers for run in list_paper_runs(config, paper, scale)
        ]
        return fingerprint_claims(catalogue, config.papers, scale, runs)
    if rule in ("table", "figure"):
        return fingerprint_display(catalogue, wildcards["paper"], wildcards["display"])
    return None


def select_published_rows(
    catalogue: Catalogue, paper: str, displays: Iterable[str]
) -> dict[str, dict[str, str]]:
    """Return the lines of published.csv of these displays, as cell -> column -> text.

    Only the displays that show a number depend on it, so that a corrected number reruns only these.
    """
    rows = _published(catalogue.root / "papers" / paper / "published.csv")
    return {cell: row for cell, row in rows.items() if cell.split("/")[0] in set(displays)}


@lru_cache
def _published(file: Path) -> dict[str, dict[str, str]]:
    if not file.exists():
        raise UserError(f"{file} does not exist; copy the header line of another paper's")
    rows = (list(row.items()) for row in read_csv(file))
    return {"/".join(text for _, text in row[:4]): dict(row[4:]) for row in rows}


def list_paper_runs(config: Config, paper: str, scale: str) -> dict[Run, list[str]]:
    """Return the runs that one paper requests at a scale, sorted.

    Its displays therefore depend neither on other papers nor on the order of the requests.
    """
    return _asked(config.model_copy(update={"papers": [paper], "scale": scale}).model_dump_json())


@lru_cache
def _asked(config: str) -> dict[Run, list[str]]:
    runs = list_requested_runs(load_catalogue(), Config.model_validate_json(config))
    return {run: runs[run] for run in sorted(runs, key=astuple)}
