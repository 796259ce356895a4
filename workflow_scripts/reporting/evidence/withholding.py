"""Planned seeds are shown only when all are scored: whoever sees an early one may stop."""

from collections import defaultdict
from collections.abc import Collection, Iterable

from workflow_scripts.common.run_names import VariantKey
from workflow_scripts.config.displays import list_score_files
from workflow_scripts.provenance.planned_seeds import collect_planned_seeds
from workflow_scripts.reporting.evidence.paper_results import PaperResults


def find_withheld(
    results: PaperResults,
    shown_seeds: Iterable[tuple[VariantKey, int | None]],
    intervened: Collection[VariantKey] = frozenset(),
) -> dict[VariantKey, str]:
    """Return variant -> "withheld: 2 of 8 planned seeds run", of those that are not all scored.

    shown_seeds: (variant, seed) of what a paper's displays read; numbers without a seed have None.
    intervened: variants that are scored only if they have scores under interventions, too.
    A variant is withheld if planned seeds are among what is read.
    """
    seeds_of_variant: dict[VariantKey, set[int | None]] = defaultdict(set)
    for variant, seed in shown_seeds:
        seeds_of_variant[variant].add(seed)
    planned_seeds = collect_planned_seeds(results.catalogue, results.paper, results.scale)
    withheld = {}
    for variant in seeds_of_variant.keys() & planned_seeds.keys():
        planned = planned_seeds[variant]
        if seeds_of_variant[variant].isdisjoint(planned):
            continue
        scored = 0
        for seed in planned:
            files = list_score_files(results.folder, variant.make_run(seed), intervened)
            is_missing = results.unfinished.is_missing_any(files)
            scored += not is_missing and all(file.exists() for file in files)
        if scored < len(planned):
            withheld[variant] = f"withheld: {scored} of {len(planned)} planned seeds run"
    return withheld
