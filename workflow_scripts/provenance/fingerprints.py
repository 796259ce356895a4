"""All that can change the result of a job, but for its input files: what it is given, and the code that it can reach.

Snakemake keeps the short form of it as a parameter of the job, and reruns the job when that changes. The record of each
result has the short form and what was given, so that `why` and `check` can compare them with those of now.
"""

import csv
import re
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_json, sha256_file, write_json
from workflow_scripts.common.hashing import digest
from workflow_scripts.common.validation import checked
from workflow_scripts.config.displays import claimed, display_runs
from workflow_scripts.config.loading import Catalogue, load_catalogue
from workflow_scripts.config.requested import requested_runs
from workflow_scripts.config.run_specs import resolve_evaluation, resolve_intervention, resolve_run, searched
from workflow_scripts.config.runs import Run, parse_run
from workflow_scripts.config.schema import Config
from workflow_scripts.config.task_specs import resolve_candidates, resolve_data
from workflow_scripts.data.sources.declared import load_repositories, load_sources
from workflow_scripts.interventions.settings import WHERE, Options, installed
from workflow_scripts.provenance.code import PACKAGE, code_digest, definitions

# The digests of all functions and classes behind each code digest. `why` tells from them what changed.
STORE = Path("results/code")
SHORT = re.compile(r"^given (?P<given>[0-9a-f]{16}), code (?P<code>[0-9a-f]{16})$")


@dataclass(frozen=True)
class Facts:
    """`given` is JSON content; `modules` are the entry points of the code."""

    given: Any
    modules: tuple[str, ...]

    @property
    def code(self) -> str:
        return code_digest(self.modules)

    def __str__(self) -> str:
        return f"given {digest(self.given)}, code {self.code}"


def of_data(spec: dict) -> Facts:
    """`spec` is a resolved data spec."""
    return Facts(spec, (f"{PACKAGE}.data.prepared", spec["prepare"]))


def model_code(spec: dict) -> str:
    """Name of the module that builds the model of a spec."""
    return f"{PACKAGE}.models.{spec['model']['name']}.model"


def of_training(spec: dict) -> Facts:
    """`spec` is a resolved run."""
    modules = [f"{PACKAGE}.training.run", f"{PACKAGE}.tasks.{spec['kind']}.problem", model_code(spec)]
    if spec["objective"]:
        modules.append(f"{PACKAGE}.objectives.{spec['objective']['name']}.objective")
    measures = spec["training"]["validation"].get("decoding", {}).get("measures", {})
    return Facts(spec, (*modules, *measures))


def of_search(spec: dict) -> Facts:
    """`spec` is the resolved run of the search's seed."""
    return Facts(spec, (f"{PACKAGE}.training.search", *of_training(spec).modules))


def of_evaluation(settings: dict, spec: dict) -> Facts:
    """How the run of `spec` is scored. The run itself is an input file."""
    modules = (f"{PACKAGE}.evaluation.scores", f"{PACKAGE}.tasks.{spec['kind']}.scoring", model_code(spec))
    return Facts(settings, (*modules, *settings["measures"]))


def of_candidates(spec: dict) -> Facts:
    """`spec`: see `config.task_specs.resolve_candidates`. It only names the user's file of frequencies, and leaves
    open whether the spaCy model is installed: what of these is used is given beside it.
    """
    options, given = checked(Options, spec["options"], WHERE), dict(spec)
    if options.source == "vectors" and options.frequencies:
        file = options.frequencies
        if not Path(file).is_file():
            raise UserError(f"{WHERE}: key 'frequencies': there is no file {file}; name one that is there")
        given["frequencies"] = sha256_file(file)
    elif options.source == "wordnet" and options.vectors == "auto" and installed(options.spacy_model):
        given["vectors"] = "spacy"
    return Facts(given, (f"{PACKAGE}.interventions.candidates", f"{PACKAGE}.interventions.stand_in"))


def of_intervention(settings: dict, spec: dict) -> Facts:
    """What is changed in the run of `spec`. The run itself and the candidates are input files."""
    return Facts(settings, (f"{PACKAGE}.interventions.intervene", model_code(spec)))


def of_analysis(entry: dict, specs: Iterable[dict], numbers: dict[str, dict[str, str]] | None = None) -> Facts:
    """An entry under `analyses`, the specs of its runs, and the published numbers that it reads instead of runs."""
    models = sorted(set(map(model_code, specs)))
    given = entry if numbers is None else {"entry": entry, "published": numbers}
    published_code = () if numbers is None else (f"{PACKAGE}.evaluation.published",)
    return Facts(given, (f"{PACKAGE}.evaluation.scores", entry["module"], *models, *published_code))


def of_display(catalogue: Catalogue, kind: str, paper: str, display: str) -> Facts:
    """A table or a figure. What it shows are input files."""
    entry = catalogue.papers[paper].displays[display]
    given = {
        "entry": entry,
        "published": published(catalogue, paper, {display, *drawn_beside(entry)}),
        "caption": caption(catalogue, paper, display),
    }
    if kind == "table":
        parts = [*entry["rows"], *entry["columns"]]
        tasks = {part["task"] for part in parts if part.get("task") in catalogue.tasks}  # an audit's may be `all`
        given["titles"] = titles(catalogue, [paper], tasks)
    return Facts(given, (f"{PACKAGE}.reporting.{kind}s.{kind}", *([entry["module"]] if kind == "figure" else [])))


def titles(
    catalogue: Catalogue, papers: Iterable[str], tasks: Iterable[str], methods: Iterable[str] = ()
) -> dict[str, dict[str, str]]:
    """What papers, tasks and methods are called on the pages that speak of them."""
    return {
        "papers": {name: catalogue.papers[name].requests.title for name in papers},
        "tasks": {name: catalogue.tasks[name].title for name in tasks},
        "methods": {name: catalogue.methods[name].title for name in methods},
    }


def caption(catalogue: Catalogue, paper: str, display: str) -> str:
    """The text beside a display in the report."""
    file = catalogue.root / "papers" / paper / "captions" / f"{display}.rst"
    return file.read_text().strip() if file.exists() else catalogue.papers[paper].displays[display]["title"]


def of_claims(catalogue: Catalogue, papers: list[str], scale: str, runs: Iterable[str]) -> Facts:
    """The claims of all chosen papers, judged by the scores of `runs`."""
    runs = sorted(set(runs))
    found = {paper: catalogue.papers[paper] for paper in papers}
    plans = {name: paper.plan for name, paper in found.items() if paper.plan}
    tasks, methods = ({run.split("/")[place] for run in runs} for place in (0, 1))
    displays = {name: claimed(paper, paper.displays) for name, paper in found.items()}
    given = {
        "claims": {name: {c["claim"]: c for c in paper.claims} for name, paper in found.items()},
        "displays": displays,
        "published": {paper: published(catalogue, paper, names) for paper, names in displays.items()},
        "plans": {paper: plan.model_dump(mode="json") for paper, plan in plans.items()},
        "runs": runs,
        "scale": catalogue.scales[scale].model_dump(),
        "titles": titles(catalogue, papers, tasks, methods),
    }
    return Facts(given, (f"{PACKAGE}.reporting.claims.judging", f"{PACKAGE}.reporting.pages.overview"))


def of_job(catalogue: Catalogue, config: Config, rule: str, wildcards: dict[str, str]) -> Facts | None:
    """The facts of the job of `rule` for these wildcards; None for rules that have none."""
    scale = wildcards.get("scale", "")
    if rule == "fetch":
        return Facts({"sha256": load_sources()[wildcards["source"]].sha256}, ())
    if rule == "fetch_model":
        return Facts({"revision": load_repositories()[wildcards["model"]].revision}, ())
    if rule in ("prepare", "prepare_large"):
        return of_data(resolve_data(catalogue, wildcards["task"], scale))
    if rule == "candidates":
        return of_candidates(resolve_candidates(catalogue, wildcards["task"], scale))
    if rule == "search":
        run = parse_run(catalogue, "{task}/{method}/{variant}/seed-0".format(**wildcards))
        found = searched(catalogue, run, scale, config.precision)
        return of_search(resolve_run(catalogue, found, scale, config.precision)) if found else None
    if rule in ("train", "evaluate", "intervene"):
        run = parse_run(catalogue, "{task}/{method}/{variant}/{seed}".format(**wildcards))
        spec = resolve_run(catalogue, run, scale, config.precision)
        if rule == "train":
            return of_training(spec)
        if rule == "intervene":
            return of_intervention(resolve_intervention(catalogue, run, scale), spec)
        return of_evaluation(resolve_evaluation(catalogue, run, scale), spec)
    if rule == "claims":
        runs = [str(run) for paper in config.papers for run in asked(config, paper, scale)]
        return of_claims(catalogue, config.papers, scale, runs)
    if rule == "analyse":
        entry = catalogue.papers[wildcards["paper"]].analyses[wildcards["analysis"]]
        runs = display_runs(entry, asked(config, wildcards["paper"], scale))
        specs = [resolve_run(catalogue, run, scale, config.precision) for run in runs]
        return of_analysis(entry, specs, published(catalogue, entry["published"]) if "published" in entry else None)
    if rule in ("table", "figure"):
        return of_display(catalogue, rule, wildcards["paper"], wildcards["display"])
    return None


def drawn_beside(entry: dict) -> set[str]:
    """The displays whose published numbers a figure draws beside its runs, named one by one or by a pattern."""
    cells = [run["published"] for run in entry.get("runs", ()) if run.get("published")]
    cells += filter(None, [entry.get("options", {}).get("published")])
    return {cell.split("/")[0] for named in cells for cell in (named.values() if isinstance(named, dict) else [named])}


def published(catalogue: Catalogue, paper: str, displays: Iterable[str] | None = None) -> dict[str, dict[str, str]]:
    """Lines of published.csv by cell, then by column, of these displays only (None: all): another number reruns what
    shows it, and no more.
    """
    rows = _published(catalogue.root / "papers" / paper / "published.csv")
    return (
        rows if displays is None else {cell: row for cell, row in rows.items() if cell.split("/")[0] in set(displays)}
    )


@lru_cache
def _published(file: Path) -> dict[str, dict[str, str]]:
    try:
        with open(file, newline="", encoding="utf-8") as stream:
            reader = csv.reader(stream)
            columns = next(reader, [])[4:]
            # What is wrong with a line or with the columns is said where they are read.
            return {"/".join(row[:4]): dict(zip(columns, row[4:], strict=False)) for row in reader}
    except FileNotFoundError as error:
        raise UserError(
            f"{file} does not exist; a paper needs it, be it with the line of its columns alone: copy that from another"
        ) from error
    except UnicodeDecodeError as error:
        raise UserError(f"{file}: not UTF-8 text; convert it") from error


def asked(config: Config, paper: str, scale: str) -> dict[Run, list[str]]:
    """The runs that one paper asks for at a scale, sorted: neither what other papers ask for nor the order of the
    requests changes its displays.
    """
    return _asked(config.model_copy(update={"papers": [paper], "scale": scale}).model_dump_json())


@lru_cache
def _asked(config: str) -> dict[Run, list[str]]:
    runs = requested_runs(load_catalogue(), Config.model_validate_json(config))
    return {run: runs[run] for run in sorted(runs, key=astuple)}


def store_definitions(found: Iterable[Facts], store: Path = STORE) -> None:
    """Store what the code digests of jobs stand for, so that a later `why` can name the functions that have changed."""
    for facts in found:
        if not (path := store / f"{facts.code}.json").exists():
            write_json(path, definitions(facts.modules))


def load_definitions(code: str, store: Path = STORE) -> dict[str, dict[str, str]] | None:
    """The definitions that `store_definitions` stored under a code digest; None if there are none."""
    try:
        return read_json(store / f"{code}.json")
    except UserError:
        return None
