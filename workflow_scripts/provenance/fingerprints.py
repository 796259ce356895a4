"""Fingerprint the jobs of the workflow by the catalogue and the papers; see `spec_fingerprints`."""

from collections.abc import Iterable
from dataclasses import astuple, replace
from functools import lru_cache
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_csv
from workflow_scripts.config.catalogue import Catalogue, Run, parse_run
from workflow_scripts.config.displays import select_claimed_displays, select_display_runs
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.requested import list_requested_runs
from workflow_scripts.config.schema import Config
from workflow_scripts.config.specs import (
    find_search_run,
    resolve_candidates,
    resolve_data,
    resolve_evaluation,
    resolve_intervention,
    resolve_run,
    resolve_training,
)
from workflow_scripts.data.sources.declared import load_repositories, load_sources
from workflow_scripts.provenance.code import PACKAGE
from workflow_scripts.provenance.spec_fingerprints import (
    Fingerprint,
    fingerprint_analysis,
    fingerprint_candidates,
    fingerprint_data,
    fingerprint_evaluation,
    fingerprint_intervention,
    fingerprint_search,
    fingerprint_training,
)


def fingerprint_display(catalogue: Catalogue, kind: str, paper: str, display: str) -> Fingerprint:
    """Fingerprint a table or a figure. The scores that it shows are input files."""
    entry = catalogue.papers[paper].displays[display]
    # A figure may show the published numbers of another display.
    named = entry.get("options", {}).get("published", display).split("/")[0]
    given = {
        "entry": entry,
        "published": select_published_rows(catalogue, paper, {display, named}),
        "caption": read_caption(catalogue, paper, display),
    }
    if kind == "table":
        parts = [*entry["rows"], *entry["columns"]]
        tasks = {part["task"] for part in parts if part.get("task") in catalogue.tasks}  # an audit's may be `all`
        given["paper"] = catalogue.papers[paper].experiments.title
        given["titles"] = {name: catalogue.tasks[name].title for name in tasks}
    own = [f"{PACKAGE}.reporting.figures.{entry['module']}"] if kind == "figure" else []
    return Fingerprint(given, (f"{PACKAGE}.reporting.{kind}s.{kind}", *own))


def read_caption(catalogue: Catalogue, paper: str, display: str) -> str:
    """Return the caption of a display in the report; its title if papers/<paper>/captions has none."""
    file = catalogue.root / "papers" / paper / "captions" / f"{display}.rst"
    return file.read_text().strip() if file.exists() else catalogue.papers[paper].displays[display]["title"]


def fingerprint_claims(catalogue: Catalogue, papers: list[str], scale: str, runs: Iterable[str]) -> Fingerprint:
    """Fingerprint the verdicts on the claims of the chosen papers by the scores of `runs`."""
    runs = sorted(set(runs))
    found = {paper: catalogue.papers[paper] for paper in papers}
    displays = {name: select_claimed_displays(paper) for name, paper in found.items()}
    given = {
        "claims": {name: {c["claim"]: c for c in paper.claims} for name, paper in found.items()},
        "displays": displays,
        "published": {paper: select_published_rows(catalogue, paper, names) for paper, names in displays.items()},
        "plans": {
            name: {file: plan.model_dump(mode="json") for file, plan in paper.plans.items()}
            for name, paper in found.items()
        },
        "runs": runs,
        "scale": catalogue.scales[scale].model_dump(),
        "titles": {name: paper.experiments.title for name, paper in found.items()},
    }
    return Fingerprint(given, (f"{PACKAGE}.reporting.claims.judging", f"{PACKAGE}.reporting.pages.overview"))


def fingerprint_job(catalogue: Catalogue, config: Config, rule: str, wildcards: dict[str, str]) -> Fingerprint | None:
    """Fingerprint the job of `rule` with these wildcards; None for rules without a fingerprint."""
    scale = wildcards.get("scale", "")
    if rule == "fetch":
        return Fingerprint({"sha256": load_sources()[wildcards["source"]].sha256}, ())
    if rule == "fetch_model":
        model = load_repositories()[wildcards["model"]]
        given = {"revision": model.revision} | {name: file.sha256 for name, file in model.files.items()}
        converted = any(name.endswith(".gguf") for name in model.files)
        return Fingerprint(given, (f"{PACKAGE}.models.causal_lm.gguf_model",) if converted else ())
    if rule in ("prepare", "prepare_large"):
        return fingerprint_data(resolve_data(catalogue, wildcards["task"], scale))
    if rule == "candidates":
        return fingerprint_candidates(resolve_candidates(catalogue, wildcards["task"], scale))
    if rule == "search":
        run = parse_run(catalogue, "{task}/{method}/{variant}/seed-0".format(**wildcards))
        found = find_search_run(catalogue, run, scale, config.precision)
        return fingerprint_search(resolve_training(catalogue, found, scale, config.precision)) if found else None
    if rule in ("train", "evaluate", "intervene"):
        run = parse_run(catalogue, "{task}/{method}/{variant}/{seed}".format(**wildcards))
        if rule == "train":
            return fingerprint_training(resolve_training(catalogue, run, scale, config.precision))
        run = replace(run, seed=0)  # all seeds of a variant are scored alike
        spec = resolve_run(catalogue, run, scale, config.precision)
        if rule == "intervene":
            return fingerprint_intervention(resolve_intervention(catalogue, run, scale), spec)
        return fingerprint_evaluation(resolve_evaluation(catalogue, run, scale), spec)
    if rule == "claims":
        runs = [str(run) for paper in config.papers for run in list_paper_runs(config, paper, scale)]
        return fingerprint_claims(catalogue, config.papers, scale, runs)
    if rule == "analyse":
        entry = catalogue.papers[wildcards["paper"]].analyses[wildcards["analysis"]]
        runs = select_display_runs(entry, list_paper_runs(config, wildcards["paper"], scale))
        models = [resolve_run(catalogue, run, scale, config.precision).model.name for run in runs]
        return fingerprint_analysis(
            entry, models, select_published_rows(catalogue, entry["published"]) if "published" in entry else None
        )
    if rule in ("table", "figure"):
        return fingerprint_display(catalogue, rule, wildcards["paper"], wildcards["display"])
    return None


def select_published_rows(
    catalogue: Catalogue, paper: str, displays: Iterable[str] | None = None
) -> dict[str, dict[str, str]]:
    """Return the lines of published.csv of these displays (None: all), as cell -> column -> text.

    Only the displays that show a number depend on it, so that a corrected number reruns only these.
    """
    rows = _published(catalogue.root / "papers" / paper / "published.csv")
    if displays is None:
        return rows
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
