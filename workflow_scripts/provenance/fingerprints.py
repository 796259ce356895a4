"""Fingerprint jobs: everything except input files that can change a job's result.

A fingerprint is the job's spec and the code that it can import. Its short form is a parameter of the Snakemake rule, so
Snakemake reruns the job when it changes. The record of each result holds the short form and the spec, so that `why` and
`check` can compare them with the current ones.
"""

import re
from collections.abc import Iterable
from dataclasses import astuple, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import digest, read_csv, read_json, write_json
from workflow_scripts.common.validation import parse_as
from workflow_scripts.config.catalogue import Catalogue, Run, parse_run
from workflow_scripts.config.display_schema import Analysis, FigureDisplay
from workflow_scripts.config.displays import select_display_runs
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
)
from workflow_scripts.data.sources.declared import load_repositories, load_sources
from workflow_scripts.interventions.settings import WHERE, Options, is_installed
from workflow_scripts.provenance.code import PACKAGE, code_digest, find_closure

# Digests of the modules of each code digest, in which `why` finds the changed ones.
STORE = Path("results/code")
FINGERPRINT_PATTERN = re.compile(r"^spec (?P<spec>[0-9a-f]{16}), code (?P<code>[0-9a-f]{16})$")


@dataclass(frozen=True)
class Fingerprint:
    """`spec` is JSON content, such as a resolved spec; `modules` are the entry points of the code."""

    spec: Any
    modules: tuple[str, ...]

    @property
    def code(self) -> str:
        """Digest of the code that the modules import."""
        return code_digest(self.modules)

    def __str__(self) -> str:
        return f"spec {digest(self.spec)}, code {self.code}"


def fingerprint_data(spec: dict) -> Fingerprint:
    """Fingerprint the preparation of a resolved data spec."""
    return Fingerprint(spec, (f"{PACKAGE}.data.prepared", spec["prepare"]))


def name_model_module(spec: dict) -> str:
    """Return the name of the module that builds the model of a spec."""
    return f"{PACKAGE}.models.{spec['model']['name']}.model"


def fingerprint_training(spec: dict) -> Fingerprint:
    """Fingerprint the training of a resolved run."""
    modules = [f"{PACKAGE}.training.run", f"{PACKAGE}.tasks.{spec['kind']}.problem", name_model_module(spec)]
    if spec["objective"]:
        modules.append(f"{PACKAGE}.objectives.{spec['objective']['name']}.objective")
    validation = spec["training"]["validation"]
    measures = {} if validation == "none" else validation.get("decoding", {}).get("measures", {})
    return Fingerprint(spec, (*modules, *(f"{PACKAGE}.evaluation.{name}" for name in measures)))


def fingerprint_search(spec: dict) -> Fingerprint:
    """Fingerprint a hyperparameter search; `spec` is the resolved run of its seed."""
    return Fingerprint(spec, (f"{PACKAGE}.training.search", *fingerprint_training(spec).modules))


def fingerprint_evaluation(settings: dict, spec: dict) -> Fingerprint:
    """Fingerprint the evaluation of the run of `spec`. The run itself is an input file."""
    modules = [f"{PACKAGE}.evaluation.scores", f"{PACKAGE}.tasks.{spec['kind']}.scoring", name_model_module(spec)]
    if "weights" in spec and not spec["init"]:  # random weights, drawn for the evaluation
        modules.append(f"{PACKAGE}.tasks.{spec['kind']}.problem")
    modules += [f"{PACKAGE}.evaluation.{name}" for name in settings.get("measures", {})]
    return Fingerprint(_add_scored(settings, spec), tuple(modules))


def _add_scored(settings: dict, spec: dict) -> dict:
    """Add to the settings of scoring what no run.json holds: the spec of given weights, that of all seeds."""
    keys = ("kind", "protocol", "model", "problem", "training", "init")
    return settings | ({"scored": {key: spec[key] for key in keys}} if "weights" in spec else {})


def fingerprint_candidates(spec: dict) -> Fingerprint:
    """Fingerprint the search for replacement words; for `spec` see `config.specs.resolve_candidates`.

    The spec does not hold whether the spaCy model is installed, which changes the result where it is used.
    """
    options, given = parse_as(Options, spec["options"], WHERE), dict(spec)
    if options.vectors == "auto" and is_installed(options.spacy_model):
        given["vectors"] = "spacy"
    return Fingerprint(given, (f"{PACKAGE}.interventions.candidates", f"{PACKAGE}.interventions.synonym_resources"))


def fingerprint_intervention(settings: dict, spec: dict) -> Fingerprint:
    """Fingerprint the interventions on the run of `spec`. The run and the candidates are input files."""
    return Fingerprint(_add_scored(settings, spec), (f"{PACKAGE}.interventions.intervene", name_model_module(spec)))


def fingerprint_analysis(
    analysis: Analysis, specs: Iterable[dict], numbers: dict[str, dict[str, str]] | None = None
) -> Fingerprint:
    """Fingerprint an analysis. `numbers` are the published numbers that it reads instead of runs."""
    models = sorted(set(map(name_model_module, specs)))
    modules = [f"{PACKAGE}.evaluation.scores", f"{PACKAGE}.analyses.{analysis.module}", *models]
    if numbers is None:
        return Fingerprint(analysis.make_json(), tuple(modules))
    modules.append(f"{PACKAGE}.evaluation.published")
    return Fingerprint({"entry": analysis.make_json(), "published": numbers}, tuple(modules))


def fingerprint_display(catalogue: Catalogue, paper: str, name: str) -> Fingerprint:
    """Fingerprint a table or a figure. The scores that it shows are input files."""
    display = catalogue.papers[paper].displays[name]
    spec = {"entry": display.make_json(), "caption": read_caption(catalogue, paper, name)}
    if isinstance(display, FigureDisplay):
        # A figure may show the published numbers of another display.
        published = display.options.get("published", name).split("/")[0]
        spec["published"] = select_published_rows(catalogue, paper, {name, published})
        modules = (f"{PACKAGE}.reporting.figures.figure", f"{PACKAGE}.reporting.figures.{display.module}")
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


def fingerprint_claims(catalogue: Catalogue, papers: list[str], scale: str, runs: Iterable[str]) -> Fingerprint:
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
    return Fingerprint(spec, (f"{PACKAGE}.reporting.claims.judging", f"{PACKAGE}.reporting.pages.overview"))


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
        return fingerprint_search(resolve_run(catalogue, found, scale, config.precision)) if found else None
    if rule in ("train", "evaluate", "intervene"):
        run = parse_run(catalogue, "{task}/{method}/{variant}/{seed}".format(**wildcards))
        run = run if rule == "train" else replace(run, seed=0)  # all seeds of a variant are scored alike
        spec = resolve_run(catalogue, run, scale, config.precision)
        if rule == "train":
            return fingerprint_training(spec)
        if rule == "intervene":
            return fingerprint_intervention(resolve_intervention(catalogue, run, scale), spec)
        return fingerprint_evaluation(resolve_evaluation(catalogue, run, scale), spec)
    if rule == "claims":
        runs = [str(run) for paper in config.papers for run in list_paper_runs(config, paper, scale)]
        return fingerprint_claims(catalogue, config.papers, scale, runs)
    if rule == "analyse":
        analysis = catalogue.papers[wildcards["paper"]].analyses[wildcards["analysis"]]
        runs = select_display_runs(analysis, list_paper_runs(config, wildcards["paper"], scale))
        specs = [resolve_run(catalogue, run, scale, config.precision) for run in runs]
        return fingerprint_analysis(analysis, specs, select_analysed_numbers(catalogue, analysis))
    if rule in ("table", "figure"):
        return fingerprint_display(catalogue, wildcards["paper"], wildcards["display"])
    return None


def select_analysed_numbers(catalogue: Catalogue, analysis: Analysis) -> dict[str, dict[str, str]] | None:
    """Return the lines of published.csv that an analysis reads; None if it reads runs."""
    return None if analysis.published is None else select_published_rows(catalogue, analysis.published)


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


def store_modules(found: Iterable[Fingerprint], store: Path = STORE) -> None:
    """Store the digests of the modules of jobs, so that a later `why` can name changed modules."""
    for fingerprint in found:
        if not (path := store / f"{fingerprint.code}.json").exists():
            write_json(path, find_closure(fingerprint.modules))


def load_modules(code: str, store: Path = STORE) -> dict[str, str] | None:
    """Return module -> digest as `store_modules` stored it for a code digest; None if it did not."""
    try:
        return read_json(store / f"{code}.json")
    except UserError:
        return None
