"""Which seeds of a variant count, where those of an analysis plan were run after its pilots."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from workflow_scripts.common.run_names import VariantKey
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.requested import list_requested_runs
from workflow_scripts.config.schema import Config

SeedsOfVariant = dict[VariantKey, set[int]]


@dataclass(frozen=True)
class CountedSeeds:
    """The seeds of a variant that count for a paper's primary claims, and for all else.

    For primary claims these are the seeds that the paper requests. All else has them when all are
    there; until then, the earlier ones: the pilots of the analysis plans.
    """

    primary: set[int]
    others: set[int]


def count_seeds(
    catalogue: Catalogue, scale: str, paper: str, scored: Mapping[VariantKey, set[int]]
) -> dict[VariantKey, CountedSeeds]:
    """Return which seeds of each variant that a paper requests count, of those that are scored."""
    requested: SeedsOfVariant = defaultdict(set)
    config = Config(scale=scale, papers=[paper], extra=True)
    for run in list_requested_runs(catalogue, config):
        requested[run.variant_key].add(run.seed)
    planned: set[int] = set()
    for claim in catalogue.papers[paper].list_primary_claims(scale):
        planned.update(claim.seeds)
    counted = {}
    for variant, seeds in scored.items():
        if variant not in requested:
            continue
        requested_seeds = seeds & requested[variant] or seeds
        counted_seeds = requested_seeds
        if not requested[variant] <= seeds:
            counted_seeds = seeds - planned or seeds
        counted[variant] = CountedSeeds(requested_seeds, counted_seeds)
    return counted


def find_uncounted_seeds(
    catalogue: Catalogue, scale: str, scored: Mapping[VariantKey, set[int]]
) -> SeedsOfVariant:
    """Return the seeds of each variant that no paper's tables count, where pilots are among all.

    Of variants without a pilot every seed counts, and so does a seed that no plan names, which is a
    user's own. Variants of which every seed counts are left out.
    """
    pilots: set[int] = set()
    planned: set[int] = set()
    for paper in catalogue.papers.values():
        for plan in paper.list_plans(scale).values():
            pilots.update(plan.pilots.seeds)
            planned.update(plan.seeds)
    with_pilots = {variant: seeds for variant, seeds in scored.items() if seeds & pilots}
    if not with_pilots:
        return {}
    counted: SeedsOfVariant = defaultdict(set)
    for key in catalogue.papers:
        for variant, counted_seeds in count_seeds(catalogue, scale, key, with_pilots).items():
            counted[variant] |= counted_seeds.others
    uncounted: SeedsOfVariant = {}
    for variant, counted_seeds in counted.items():
        left_out = (scored[variant] & (pilots | planned)) - counted_seeds
        if left_out:
            uncounted[variant] = left_out
    return uncounted
