"""What a configuration needs from the network: source files, and models of the Hugging Face hub."""

from collections.abc import Iterable

from workflow_scripts.config.displays import analysis_sources, display_runs, intervened_runs
from workflow_scripts.config.loading import Catalogue
from workflow_scripts.config.run_specs import resolve_run
from workflow_scripts.config.runs import Run
from workflow_scripts.config.task_specs import resolve_candidates, resolve_data


def source_names(catalogue: Catalogue, scale: str, paper: str, runs: Iterable[Run]) -> set[str]:
    """The files, by their names in sources.yaml, that the data of `runs`, a paper's analyses of them and its
    replacements of words are made from.
    """
    runs = list(runs)
    prepared = [resolve_data(catalogue, task, scale) for task in {run.task for run in runs}]
    changed = {run.task for run in intervened_runs(catalogue, paper, runs)}
    replaced = [resolve_candidates(catalogue, task, scale) for task in changed]
    analysed = [
        analysis_sources(catalogue, entry, display_runs(entry, runs), scale)
        for entry in catalogue.papers[paper].analyses.values()
    ]
    return {file for spec in (*prepared, *replaced) for file in spec["sources"]}.union(*analysed)


def hub_models(catalogue: Catalogue, scale: str, precision: str, runs: Iterable[Run]) -> set[str]:
    """The models of the hub that `runs` start from."""
    origins = [resolve_run(catalogue, run, scale, precision)["init"] or {} for run in runs]
    return {origin["hub"] for origin in origins if "hub" in origin}
