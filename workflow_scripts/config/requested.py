"""Runs that papers request, and among them those that decide the primary claims of an analysis plan."""

from collections.abc import Collection, Iterable, Mapping

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_file
from workflow_scripts.common.validation import locate
from workflow_scripts.config.analysis_plan import PrimaryClaim
from workflow_scripts.config.catalogue import Catalogue, Paper, Run, VariantKey
from workflow_scripts.config.display_schema import (
    list_cell_variants,
    list_claim_cells,
    list_table_cells,
    match_stars,
    name_cell,
)
from workflow_scripts.config.schema import Config
from workflow_scripts.config.specs import find_parent_run


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


def list_primary_variants(paper: Paper, entry: PrimaryClaim) -> list[VariantKey]:
    """Return the variants that decide a primary claim: those of its sides and of its controls."""
    claims = {claim["claim"]: claim for claim in paper.claims}
    named = [*list_claim_cells(claims[entry.claim]), *entry.control.cells]
    named += list_claim_cells(claims[entry.control.same_sign]) if entry.control.same_sign else []
    return _list_variants(paper, named)


def _list_variants(paper: Paper, keys: Iterable[str]) -> list[VariantKey]:
    """Return the variants whose scores the cells `keys` of a paper's displays show."""
    variants: dict[VariantKey, None] = {}
    for key in keys:
        display = key.split("/")[0]
        for cell in list_table_cells(paper.displays[display]):
            if match_stars(key, name_cell(display, cell)) is not None:
                variants |= dict.fromkeys(list_cell_variants(cell))
    return list(variants)


def list_planned_seeds(paper: Paper) -> dict[VariantKey, list[int]]:
    """Return the planned seeds of each variant that a primary or secondary claim of the paper's plan compares."""
    if paper.plan is None:
        return {}
    claims = {claim["claim"]: claim for claim in paper.claims}
    secondary = [key for name in paper.plan.secondary for key in list_claim_cells(claims[name])]
    planned = dict.fromkeys(_list_variants(paper, secondary), paper.plan.seeds)
    for entry in paper.plan.primary:
        planned |= dict.fromkeys(list_primary_variants(paper, entry), paper.plan.select_seeds(entry))
    return planned


def list_planned_runs(paper: Paper, entry: PrimaryClaim) -> list[Run]:
    """Return the runs that decide a primary claim: each of its variants with each planned seed."""
    seeds = paper.plan.select_seeds(entry) if paper.plan else []
    return [Run(*variant, seed) for variant in list_primary_variants(paper, entry) for seed in seeds]


def check_requested(catalogue: Catalogue, config: Config, runs: Mapping[Run, Collection[str]]) -> None:
    """Raise UserError unless the papers request exactly the planned seeds of the variants that decide primary claims.

    `runs` are the requested ones, each with the papers that ask for it. Where config.yaml names the seeds, and at
    another scale than the plan's, there is nothing to check.
    """
    for key in config.papers:
        paper = catalogue.papers[key]
        if config.seeds or paper.plan is None or paper.plan.scale != config.scale:
            continue
        asked: dict[VariantKey, list[int]] = {}
        for run, askers in runs.items():
            if key in askers:
                asked.setdefault(run.unseeded, []).append(run.seed)
        for entry in paper.plan.primary:
            planned = sorted(paper.plan.select_seeds(entry))
            for variant in list_primary_variants(paper, entry):
                if (found := sorted(asked.get(variant, []))) != planned:
                    where = locate(catalogue.root / "papers" / key / "experiments.yaml", ("experiments",))
                    raise UserError(
                        f"{where}: {'/'.join(variant)} at {config.scale} has the seeds {found}, "
                        f"but claim {entry.claim} is judged on {planned}; ask for exactly those"
                    )


def hash_plans(catalogue: Catalogue, run: Run, scale: str) -> dict[str, str]:
    """Return paper -> sha256 of its analysis_plan.yaml, for the papers with a primary claim that `run` decides."""
    papers = dict.fromkeys(paper for paper, _ in list_decided_claims(catalogue, run, scale))
    return {key: hash_file(catalogue.root / "papers" / key / "analysis_plan.yaml") for key in papers}


def list_decided_claims(catalogue: Catalogue, run: Run, scale: str) -> list[tuple[str, str]]:
    """Return (paper, claim) for each primary claim that is judged on the scores of `run`, among others."""
    return [
        (key, entry.claim)
        for key, paper in catalogue.papers.items()
        if paper.plan and paper.plan.scale == scale
        for entry in paper.plan.primary
        if run in list_planned_runs(paper, entry)
    ]
