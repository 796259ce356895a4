"""List the jobs that papers, tables, claims and runs need, without Snakemake.

They are those of ./reproduce where nothing is there yet, without downloads.
"""

from collections.abc import Iterable, Mapping, Sequence

from workflow_scripts.common.run_names import Run
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.claim_needs import find_claim_needs, split_claim_names
from workflow_scripts.config.display_schema import Analysis, Display
from workflow_scripts.config.displays import select_display_runs, select_intervened_runs
from workflow_scripts.config.schema import Config
from workflow_scripts.config.specs import find_parent_run, find_search_run, resolve_data
from workflow_scripts.workflow.snakemake_job import SnakemakeJob
from workflow_scripts.workflow.targets import list_wildcards

# In the order of the data flow.
RULES = (
    "fetch",
    "fetch_model",
    "prepare",
    "prepare_large",
    "search",
    "train",
    "evaluate",
    "candidates",
    "intervene",
    "analyse",
    "table",
    "figure",
    "claim",
    "claims",
    "record_config",
    "page",
)
# Jobs that a call for papers has once.
CALL_RULES = ("claims", "record_config", "page")


def list_paper_jobs(
    catalogue: Catalogue, config: Config, paper: str, runs: Sequence[Run]
) -> list[SnakemakeJob]:
    """List the jobs of a call for one paper, or for the claims of it that a configuration names.

    runs: those that the configuration requests of the paper.
    """
    content = catalogue.papers[paper]
    reports: list[SnakemakeJob] = []
    if config.claims:
        names = split_claim_names(config.claims)[paper]
        needs = [find_claim_needs(catalogue, paper, (name,), config.scale) for name in names]
        scored_variants = {variant for entry in needs for variant in entry.scored_variants}
        scored = [run for run in runs if run.variant_key in scored_variants]
        intervened_variants = {key for entry in needs for key in entry.intervened_variants}
        intervened = [run for run in runs if run.variant_key in intervened_variants]
        analyses = list(dict.fromkeys(name for entry in needs for name in entry.analyses))
        reports = [_make_job(config, "claim", paper=paper, claim=name) for name in names]
    else:
        displays = content.select_shown_displays(runs)
        scored = list(runs)
        intervened = select_intervened_runs(catalogue, paper, runs)
        analyses = _list_analyses(displays.values())
        for name, display in displays.items():
            reports.append(_make_job(config, display.kind, paper=paper, display=name))
        reports += [_make_job(config, rule) for rule in CALL_RULES]
    return [
        *list_run_jobs(catalogue, config, runs, scored, intervened),
        *(_make_job(config, "analyse", paper=paper, analysis=name) for name in analyses),
        *reports,
    ]


def list_display_jobs(
    catalogue: Catalogue,
    config: Config,
    paper: str,
    name: str,
    requested: Iterable[Run],
    with_parents: Sequence[Run],
) -> list[SnakemakeJob]:
    """List the jobs of a table or figure.

    requested: the runs of the paper. with_parents: those that the display shows or its analyses
    read, and those that they start from.
    """
    content = catalogue.papers[paper]
    display = content.displays[name]
    runs = list(requested)
    scored = dict.fromkeys(select_display_runs(display, runs))
    intervened_variants = set(display.intervened_variants)
    analyses = display.list_analyses()
    for analysis in _select_analyses(content.analyses, analyses):
        intervened_variants |= analysis.intervened_variants
        if analysis.scored:
            scored |= dict.fromkeys(select_display_runs(analysis, runs))
    intervened = [run for run in with_parents if run.variant_key in intervened_variants]
    return [
        *list_run_jobs(catalogue, config, with_parents, list(scored), intervened),
        *(_make_job(config, "analyse", paper=paper, analysis=name) for name in analyses),
        _make_job(config, display.kind, paper=paper, display=name),
    ]


def list_run_jobs(
    catalogue: Catalogue,
    config: Config,
    runs: Sequence[Run],
    scored: Iterable[Run],
    intervened: Sequence[Run],
) -> list[SnakemakeJob]:
    """List the jobs on runs: data, searches, trainings, evaluations and interventions.

    runs: all of them, with those that they start from. scored, intervened: those among them that
    are evaluated, and that have interventions.
    """
    searches = list_searches(catalogue, config, runs)
    trained = {run: None for run in runs if not run.weights}
    for run in searches:
        # A search may have another seed than the runs, and then starts from one more trained run.
        parent = find_parent_run(catalogue, run, config.scale, config.precision)
        if parent:
            trained[parent] = None
    jobs = []
    for task in dict.fromkeys(run.task for run in runs):
        jobs.append(_make_job(config, find_prepare_rule(catalogue, task, config.scale), task=task))
    for run in searches:
        names = {"task": run.task, "method": run.method, "variant": run.variant}
        jobs.append(_make_job(config, "search", **names))
    jobs += [_make_job(config, "train", **list_wildcards(run)) for run in trained]
    jobs += [_make_job(config, "evaluate", **list_wildcards(run)) for run in scored]
    for task in dict.fromkeys(run.task for run in intervened):
        jobs.append(_make_job(config, "candidates", task=task))
    jobs += [_make_job(config, "intervene", **list_wildcards(run)) for run in intervened]
    return jobs


def list_searches(catalogue: Catalogue, config: Config, runs: Iterable[Run]) -> list[Run]:
    """Return the runs of the hyperparameter searches before `runs`, each once."""
    searches: dict[Run, None] = {}
    for run in runs:
        search = find_search_run(catalogue, run, config.scale, config.precision)
        if search:
            searches[search] = None
    return list(searches)


def find_prepare_rule(catalogue: Catalogue, task: str, scale: str) -> str:
    """Return the rule that prepares the data of a task: large ones have their own."""
    is_large = catalogue.tasks[task].disk and resolve_data(catalogue, task, scale).sources
    return "prepare_large" if is_large else "prepare"


def _list_analyses(displays: Iterable[Display]) -> list[str]:
    """Return the names of the analyses that displays show, each once."""
    names: dict[str, None] = {}
    for display in displays:
        names |= dict.fromkeys(display.list_analyses())
    return list(names)


def _select_analyses(analyses: Mapping[str, Analysis], names: Iterable[str]) -> list[Analysis]:
    return [analyses[name] for name in names]


def _make_job(config: Config, rule: str, **names: str) -> SnakemakeJob:
    return SnakemakeJob(rule, {"scale": config.scale, **names})
