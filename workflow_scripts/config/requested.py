"""Runs that papers request, and among them those that decide the primary claims of their analysis plans."""

from collections.abc import Collection, Iterable, Mapping

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_file
from workflow_scripts.common.validation import locate
from workflow_scripts.config.analysis_plan import PlannedClaim, PrimaryClaim
from workflow_scripts.config.catalogue import Catalogue, Paper, Run, VariantKey, store_with_catalogue
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
    runs = _list_runs(catalogue, config, extra)
    check_requested(catalogue, config, runs, runs if extra else _list_runs(catalogue, config, extra=True))
    return runs


def _list_runs(catalogue: Catalogue, config: Config, extra: bool) -> dict[Run, list[str]]:
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


def list_planned_seeds(paper: Paper, scale: str) -> dict[VariantKey, list[int]]:
    """Return the planned seeds of each variant that a primary or secondary claim of a plan of the scale compares."""
    claims = {claim["claim"]: claim for claim in paper.claims}
    seeds: dict[VariantKey, list[int]] = {}
    for plan in paper.plans.values():
        if plan.scale == scale:
            secondary = [key for name in plan.secondary for key in list_claim_cells(claims[name])]
            seeds |= dict.fromkeys(_list_variants(paper, secondary), plan.seeds)
    for planned in paper.list_primary_claims(scale):
        seeds |= dict.fromkeys(list_primary_variants(paper, planned.entry), planned.seeds)
    return seeds


def list_planned_runs(paper: Paper, planned: PlannedClaim) -> list[Run]:
    """Return the runs that decide a primary claim: each of its variants with each planned seed."""
    variants = list_primary_variants(paper, planned.entry)
    return [Run(*variant, seed) for variant in variants for seed in planned.seeds]


def check_requested(
    catalogue: Catalogue, config: Config, runs: Mapping[Run, Collection[str]], with_extra: Mapping[Run, Collection[str]]
) -> None:
    """Raise UserError unless the papers request exactly the planned seeds of the variants that decide primary claims.

    `runs` are the requested ones, each with the papers that ask for it, `with_extra` those and the extra ones. A claim
    may be decided by extra runs alone. Where config.yaml names the seeds there is nothing to check.
    """
    for key in config.papers if not config.seeds else ():
        paper = catalogue.papers[key]
        asked, asked_with_extra = (_list_seeds(key, requested) for requested in (runs, with_extra))
        for planned in paper.list_primary_claims(config.scale):
            variants = list_primary_variants(paper, planned.entry)
            seeds_of = asked if any(variant in asked for variant in variants) else asked_with_extra
            for variant in variants:
                seeds = seeds_of.get(variant, [])
                if seeds != sorted(planned.seeds):
                    where = locate(catalogue.root / "papers" / key / "experiments.yaml", ("experiments",))
                    raise UserError(
                        f"{where}: {'/'.join(variant)} at {config.scale} has the seeds {seeds}, "
                        f"but claim {planned.name} is judged on {sorted(planned.seeds)}; ask for exactly those"
                    )


def _list_seeds(paper: str, runs: Mapping[Run, Collection[str]]) -> dict[VariantKey, list[int]]:
    """Return the seeds of each variant that a paper asks for, in order."""
    seeds: dict[VariantKey, list[int]] = {}
    for run, papers in runs.items():
        if paper in papers:
            seeds.setdefault(run.unseeded, []).append(run.seed)
    return {variant: sorted(asked) for variant, asked in seeds.items()}


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
            for run in dict.fromkeys(list_planned_runs(paper, planned)):
                claims.setdefault(run, []).append((key, planned))
    return claims
