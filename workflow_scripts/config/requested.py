"""Runs that papers request, and those that decide the primary claims of their analysis plans."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Literal

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_file
from workflow_scripts.common.run_names import Run, VariantKey
from workflow_scripts.common.validation import locate, suggest_name
from workflow_scripts.config.analysis_plan import PlannedClaim
from workflow_scripts.config.catalogue import Catalogue, store_with_catalogue
from workflow_scripts.config.claim_needs import (
    ClaimNeeds,
    check_claim_names,
    find_claim_needs,
    is_measured,
    split_claim_names,
)
from workflow_scripts.config.schema import PLANNED, Config
from workflow_scripts.config.specs import find_parent_run

PapersByRun = Mapping[Run, Collection[str]]  # run -> the papers that ask for it
SeedsByVariant = dict[VariantKey, list[int]]
DecidedClaims = list[tuple[str, PlannedClaim]]  # paper, claim
# The keys of config.yaml on which the requested runs depend.
REQUEST_KEYS = {"scale", "papers", "seeds", "extra", "only", "precision", "claims"}
# Those on which all runs of the papers depend, of which claims need some.
RUN_KEYS = REQUEST_KEYS - {"claims"}


def list_requested_runs(catalogue: Catalogue, config: Config) -> dict[Run, list[str]]:
    """Return the runs of the papers of a configuration at its scale, each with its papers.

    They are in the order of the files; a run that others start from comes before the first of
    them. Where the configuration names claims, they are those that these need. Raises UserError
    where a paper does not ask for the seeds of its analysis plan, and for claims that do not exist
    or are not measured at the scale.
    """
    check_named_claims(catalogue, config)
    extra = config.extra or catalogue.scales[config.scale].extra
    whole = config.model_copy(update={"only": None})
    runs = _list_runs(catalogue, whole, extra)
    runs_with_extra = runs if extra else _list_runs(catalogue, whole, extra=True)
    check_requested(catalogue, config, runs, runs_with_extra)
    if config.only:
        runs = _list_runs(catalogue, config, extra)
        runs_with_extra = _list_runs(catalogue, config, extra=True)
    if config.claims:
        return _select_claimed_runs(catalogue, config, runs, runs_with_extra)
    return runs


def list_paper_runs(
    catalogue: Catalogue, config: Config, paper: str, scale: str
) -> dict[Run, list[str]]:
    """Return the runs that one paper requests at a scale, sorted.

    Its displays therefore depend neither on other papers nor on the order of the requests.
    """
    config_of_paper = config.model_copy(update={"scale": scale, "papers": [paper]})
    return _list_sorted_runs(catalogue, config_of_paper.model_dump_json(include=REQUEST_KEYS))


@store_with_catalogue
def _list_sorted_runs(catalogue: Catalogue, settings: str) -> dict[Run, list[str]]:
    """Return the runs of a configuration. settings: its REQUEST_KEYS, as JSON."""
    runs = list_requested_runs(catalogue, Config.model_validate_json(settings))
    return {run: runs[run] for run in sorted(runs)}


def _list_runs(catalogue: Catalogue, config: Config, extra: bool) -> dict[Run, list[str]]:
    """Return the runs of the papers, each with its papers; `extra`: with experiments marked so."""
    return dict(_list_stored_runs(catalogue, config.model_dump_json(include=RUN_KEYS), extra))


@store_with_catalogue
def _list_stored_runs(catalogue: Catalogue, settings: str, extra: bool) -> dict[Run, list[str]]:
    """Return the runs of the papers. settings: the RUN_KEYS of a configuration, as JSON."""
    config = Config.model_validate_json(settings)
    papers_by_run: dict[Run, list[str]] = {}
    for key in config.papers:
        for requested_run in _iterate_experiment_runs(catalogue, key, config, extra):
            for run in list_lineage(catalogue, requested_run, config):
                papers = papers_by_run.setdefault(run, [])
                if key not in papers:
                    papers.append(key)
    return papers_by_run


def _iterate_experiment_runs(
    catalogue: Catalogue, key: str, config: Config, extra: bool
) -> Iterator[Run]:
    """Yield the runs that experiments.yaml names, without those that they start from.

    Raises UserError for an experiment without seeds at the scale.
    """
    for place, experiment in catalogue.papers[key].experiments.map_at(config.scale).items():
        if experiment.extra and not extra:
            continue
        if not config.seeds and not experiment.seeds[config.scale]:
            file = catalogue.root / "papers" / key / "experiments.yaml"
            name = ".".join(map(str, place))
            problem = f"{locate(file, place)}: {name} has no seeds at {config.scale}"
            raise UserError(f"{problem}; name them in `seeds`, or its scales in `at`")
        for variant in experiment.list_variants(config.only):
            seeds = config.seeds
            if not seeds:
                seeds = _find_seeds(catalogue, key, place, variant, config.scale)
            for seed in seeds:
                yield variant.make_run(seed)


def _find_seeds(
    catalogue: Catalogue, key: str, place: tuple[str, int], variant: VariantKey, scale: str
) -> list[int]:
    """Return the seeds that an experiment of a paper asks for, of one of its variants at a scale.

    place: the keys of the experiment in the file. Raises UserError if they are planned by a paper
    that does not exist, or that compares the variant in no claim of its plans.
    """
    experiments = catalogue.papers[key].experiments
    part, number = place
    own_seeds = getattr(experiments, part)[number].seeds
    seeds = (experiments.seeds | own_seeds)[scale]
    if isinstance(seeds, list):
        return seeds
    if seeds == PLANNED:
        return catalogue.papers[key].find_planned_seeds(variant, scale)
    file = catalogue.root / "papers" / key / "experiments.yaml"
    keys = (*place, "seeds", scale) if scale in own_seeds else ("seeds", scale)
    line = locate(file, keys)
    if seeds.planned not in catalogue.papers:
        suggestion = suggest_name(seeds.planned, catalogue.papers)
        raise UserError(f"{line}: seeds are planned by '{seeds.planned}'; {suggestion}")
    planned_seeds = catalogue.papers[seeds.planned].list_planned_seeds(scale)
    if variant not in planned_seeds:
        problem = f"no plan of {seeds.planned} at {scale} compares {variant}"
        raise UserError(f"{line}: {problem}; name its seeds")
    return planned_seeds[variant]


def list_lineage(catalogue: Catalogue, run: Run, config: Config) -> list[Run]:
    """Return the run after the runs that it starts from."""
    parent = find_parent_run(catalogue, run, config.scale, config.precision)
    if parent is None:
        return [run]
    return [*list_lineage(catalogue, parent, config), run]


def check_named_claims(catalogue: Catalogue, config: Config, place: str = "") -> None:
    """Raise UserError if a claim of a configuration does not exist, or not at its scale.

    place: where the claims are named, if it is known.

    A claim exists at the scales that have runs, extra ones included, for each cell that it
    compares.
    """
    check_claim_names(catalogue, config.claims or (), place)
    for name in config.claims or ():
        if is_measured_at(catalogue, name, config.scale, config.only):
            continue
        scales = list_claim_scales(catalogue, name)
        if config.scale in scales:
            raise UserError(f"claim {name} needs runs that `only: paper` leaves out; remove it")
        if not scales:
            raise UserError(f"claim {name} is measured at no scale; choose another one")
        advice = f"./reproduce --claim {name} --scale {scales[0]}"
        measured = " and ".join(scales)
        raise UserError(
            f"claim {name} is not measured at {config.scale}, but at {measured}: {advice}"
        )


def list_claim_scales(catalogue: Catalogue, name: str) -> list[str]:
    """List the scales at which the claim `<paper>/<claim>` can have an effect."""
    return [scale for scale in catalogue.scales if is_measured_at(catalogue, name, scale)]


def is_measured_at(
    catalogue: Catalogue, name: str, scale: str, only: Literal["paper"] | None = None
) -> bool:
    """Whether the claim `<paper>/<claim>` can have an effect at a scale. only: of config.yaml."""
    key, claim = name.split("/")
    variants: set[VariantKey] = set()
    for experiment in catalogue.papers[key].experiments.list_at(scale):
        variants.update(experiment.list_variants(only))
    paper = catalogue.papers[key]
    return is_measured(paper, paper.claims_by_name[claim], variants)


def select_claim(config: Config, paper: str, claim: str) -> Config:
    """Return the configuration with a claim of a paper alone."""
    return config.model_copy(update={"papers": [paper], "claims": [f"{paper}/{claim}"]})


def find_paper_needs(catalogue: Catalogue, config: Config, paper: str) -> ClaimNeeds:
    """Return what the claims of a paper need that the configuration names."""
    names = split_claim_names(config.claims or ()).get(paper, ())
    return find_claim_needs(catalogue, paper, names, config.scale)


def _select_claimed_runs(
    catalogue: Catalogue,
    config: Config,
    runs: PapersByRun,
    runs_with_extra: PapersByRun,
) -> dict[Run, list[str]]:
    """Return the runs that the claims of a configuration need, and those that they start from.

    The extra ones are among them if without them a cell that a claim compares would have no run.
    """
    claimed: dict[Run, list[str]] = {}
    for paper in config.papers:
        needs = find_paper_needs(catalogue, config, paper)
        runs_of_paper = [run for run, papers in runs.items() if paper in papers]
        all_runs = [run for run, papers in runs_with_extra.items() if paper in papers]
        if _is_extra_needed(needs, runs_of_paper, all_runs):
            runs_of_paper = all_runs
        for needed_run in runs_of_paper:
            if needed_run.variant_key not in needs.variants:
                continue
            for run in list_lineage(catalogue, needed_run, config):
                papers = claimed.setdefault(run, [])
                if paper not in papers:
                    papers.append(paper)
    return claimed


def _is_extra_needed(needs: ClaimNeeds, runs: Iterable[Run], all_runs: Iterable[Run]) -> bool:
    """Whether claims need more than `runs` of a paper. all_runs: those with the extra ones."""
    variants = {run.variant_key for run in runs}
    all_variants = {run.variant_key for run in all_runs}
    compared = set(needs.compared_variants)
    for analysis in needs.analyses.values():
        # Of an analysis that has some runs, others may be extra: it is then made without them.
        if not analysis.variants & variants:
            compared |= analysis.variants
    return not compared & all_variants <= variants


def check_requested(
    catalogue: Catalogue,
    config: Config,
    runs: PapersByRun,
    runs_with_extra: PapersByRun,
) -> None:
    """Raise UserError unless papers request the planned seeds of what decides primary claims.

    No seed may be missing, and none may be added. `runs` are the requested ones,
    `runs_with_extra` those and the extra ones: a claim may be decided by extra runs alone. Where
    config.yaml names the seeds there is nothing to check.
    """
    if config.seeds:
        return
    for key in config.papers:
        paper = catalogue.papers[key]
        seeds = _list_seeds(key, runs)
        seeds_with_extra = _list_seeds(key, runs_with_extra)
        file = catalogue.root / "papers" / key / "experiments.yaml"
        for planned in paper.list_primary_claims(config.scale):
            variants = paper.list_deciding_variants(planned.entry)
            by_extra_runs = not any(variant in seeds for variant in variants)
            requested = seeds_with_extra if by_extra_runs else seeds
            for variant in variants:
                seeds_of_variant = requested.get(variant, [])
                if seeds_of_variant != sorted(planned.seeds):
                    raise UserError(
                        f"{locate(file, ('experiments',))}: {variant} at {config.scale} "
                        f"has the seeds {seeds_of_variant}, but claim {planned.name} is judged on "
                        f"{sorted(planned.seeds)}; write `planned` for them"
                    )


def _list_seeds(paper: str, runs: PapersByRun) -> SeedsByVariant:
    """Return the seeds of each variant that a paper asks for, in order."""
    seeds: SeedsByVariant = {}
    for run, papers in runs.items():
        if paper in papers:
            seeds.setdefault(run.variant_key, []).append(run.seed)
    for seeds_of_variant in seeds.values():
        seeds_of_variant.sort()
    return seeds


def hash_plans(catalogue: Catalogue, run: Run, scale: str) -> dict[str, str]:
    """Return file in papers/ -> sha256 of each plan with a primary claim that `run` decides."""
    hashes: dict[str, str] = {}
    for paper, planned in list_decided_claims(catalogue, run, scale):
        file = f"{paper}/{planned.file}"
        if file not in hashes:
            hashes[file] = hash_file(catalogue.root / "papers" / file)
    return hashes


def list_decided_claims(catalogue: Catalogue, run: Run, scale: str) -> DecidedClaims:
    """Return (paper, claim) for each primary claim that is judged on `run`, among others."""
    return map_decided_claims(catalogue, scale).get(run, [])


@store_with_catalogue
def map_decided_claims(catalogue: Catalogue, scale: str) -> dict[Run, DecidedClaims]:
    """Return (paper, claim) of each primary claim of a scale, by the runs that decide it."""
    claims: dict[Run, DecidedClaims] = {}
    for key, paper in catalogue.papers.items():
        for planned in paper.list_primary_claims(scale):
            for run in dict.fromkeys(paper.list_planned_runs(planned)):
                claims.setdefault(run, []).append((key, planned))
    return claims
