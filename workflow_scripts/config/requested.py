"""Runs that papers request."""

from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.planned import check_requested
from workflow_scripts.config.run_specs import find_parent_run
from workflow_scripts.config.runs import Run
from workflow_scripts.config.schema import Config


def list_requested_runs(catalogue: Catalogue, config: Config) -> dict[Run, list[str]]:
    """Return the runs of the chosen papers at the chosen scale, in the order of the files, each with its papers.

    A run that others start from comes before the first of them. Raises UserError where a paper does not ask for the
    seeds of its analysis plan.
    """
    extra = config.extra or catalogue.scales[config.scale].extra
    runs: dict[Run, list[str]] = {}
    for paper in config.papers:
        for experiment in catalogue.papers[paper].experiments.list_at(config.scale):
            if experiment.extra and not extra:
                continue
            for variant in experiment.list_variants():
                for seed in config.seeds or experiment.seeds[config.scale]:
                    for asked in list_lineage(catalogue, Run(*variant, seed), config):
                        askers = runs.setdefault(asked, [])
                        askers += [paper] if paper not in askers else []
    check_requested(catalogue, config, runs)
    return runs


def list_lineage(catalogue: Catalogue, run: Run, config: Config) -> list[Run]:
    """Return the run after the runs that it starts from."""
    before = find_parent_run(catalogue, run, config.scale, config.precision)
    return [*(list_lineage(catalogue, before, config) if before else ()), run]
