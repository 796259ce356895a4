"""Runs that papers request, and among them those that decide the primary claims of their analysis plans."""

from collections.abc import Collection, Iterator, Mapping

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_file
from workflow_scripts.common.validation import locate
from workflow_scripts.config.analysis_plan import PlannedClaim
from workflow_scripts.config.catalogue import Catalogue, Paper, Run, store_with_catalogue
from workflow_scripts.config.display_schema import VariantKey
from workflow_scripts.config.schema import Config
from workflow_scripts.config.specs import find_parent_run


def list_requested_runs(catalogue: Catalogue, config: Config) -> dict[Run, list[str]]:
    """Return the runs of the chosen papers at the chosen scale, in the order of the files, each with its papers.

    A run that others start from comes before the first of them. Raises UserError where a paper does not ask for the
    seeds of its analysis plan.
    """
    extra = config.extra or catalogue.scales[config.scale].extra
    runs = _list_runs(catalogue, config, extra)
    check_requested(catalogue, config, runs, runs if extra else _list_runs(catalogue, config, extra=True))
    return runs


def _list_runs(catalogue: Catalogue, config: Config, extra: bool) -> dict[Run, list[str]]:
    """Return the runs of the chosen papers, each with its papers; with those of experiments marked `extra` or not."""
    papers_of_run: dict[Run, list[str]] = {}
    for key in config.papers:
        for requested_run in _list_paper_runs(catalogue.papers[key], config, extra):
            for run in list_lineage(catalogue, requested_run, config):
                papers = papers_of_run.setdefault(run, [])
                if key not in papers:
                    papers.append(key)
    return papers_of_run


def _list_paper_runs(paper: Paper, config: Config, extra: bool) -> Iterator[Run]:
    """Yield the runs that experiments.yaml of a paper names, without those that they start from."""
    for experiment in paper.experiments.list_at(config.scale):
        if experiment.extra and not extra:
            continue
        for variant in experiment.list_variants():
            for seed in config.seeds or paper.find_seeds(experiment, variant, config.scale):
                yield Run(*variant, seed)


def list_lineage(catalogue: Catalogue, run: Run, config: Config) -> list[Run]:
    """Return the run after the runs that it starts from."""
    before = find_parent_run(catalogue, run, config.scale, config.precision)
    return [*(list_lineage(catalogue, before, config) if before else ()), run]


def check_requested(
    catalogue: Catalogue, config: Config, runs: Mapping[Run, Collection[str]], with_extra: Mapping[Run, Collection[str]]
) -> None:
    """Raise UserError unless the papers request exactly the planned seeds of the variants that decide primary claims.

    `runs` are the requested ones, each with the papers that ask for it, `with_extra` those and the extra ones. A claim
    may be decided by extra runs alone. Where config.yaml names the seeds there is nothing to check.
    """
    if config.seeds:
        return
    for key in config.papers:
        paper = catalogue.papers[key]
        seeds_of = _list_seeds(key, runs)
        seeds_with_extra = _list_seeds(key, with_extra)
        for planned in paper.list_primary_claims(config.scale):
            variants = paper.list_primary_variants(planned.entry)
            by_extra_runs = not any(variant in seeds_of for variant in variants)
            for variant in variants:
                seeds = (seeds_with_extra if by_extra_runs else seeds_of).get(variant, [])
                if seeds != sorted(planned.seeds):
                    where = locate(catalogue.root / "papers" / key / "experiments.yaml", ("experiments",))
                    raise UserError(
                        f"{where}: {'/'.join(variant)} at {config.scale} has the seeds {seeds}, "
                        f"but claim {planned.name} is judged on {sorted(planned.seeds)}; write `planned` for them"
                    )


def _list_seeds(paper: str, runs: Mapping[Run, Collection[str]]) -> dict[VariantKey, list[int]]:
    """Return the seeds of each variant that a paper asks for, in order."""
    seeds: dict[VariantKey, list[int]] = {}
    for run, papers in runs.items():
        if paper in papers:
            seeds.setdefault(run.unseeded, []).append(run.seed)
    return {variant: sorted(of_variant) for variant, of_variant in seeds.items()}


def hash_plans(catalogue: Catalogue, run: Run, scale: str) -> dict[str, str]:
    """Return file in papers/ -> sha256 of each analysis plan with a primary claim that `run` decides."""
    files = dict.fromkeys(f"{paper}/{planned.file}" for paper, planned in list_decided_claims(catalogue, run, scale))
    return {file: hash_file(catalogue.root / "papers" / file) for file in files}


def list_decided_claims(catalogue: Catalogue, run: Run, scale: str) -> list[tuple[str, PlannedClaim]]:
    """Return (paper, claim) for each primary claim that is judged on the scores of `run`, among others."""
    return map_decided_claims(catalogue, scale).get(run, [])


@store_with_catalogue
def map_decided_claims(catalogue: Catalogue, scale: str) -> dict[Run, list[tuple[str, PlannedClaim]]]:
    """Return (paper, claim) of each primary claim of a scale, by the runs that it is judged on."""
    claims: dict[Run, list[tuple[str, PlannedClaim]]] = {}
    for key, paper in catalogue.papers.items():
        for planned in paper.list_primary_claims(scale):
            for run in dict.fromkeys(paper.list_planned_runs(planned)):
                claims.setdefault(run, []).append((key, planned))
    return claims
