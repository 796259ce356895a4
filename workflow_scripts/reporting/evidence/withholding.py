"""Planned seeds are shown only when all are scored: whoever sees an early one may stop."""

from collections import defaultdict
from collections.abc import Iterable

from workflow_scripts.common.run_names import VariantKey
from workflow_scripts.reporting.evidence.paper_results import PaperResults


def find_withheld(
    results: PaperResults, shown_seeds: Iterable[tuple[VariantKey, int | None]]
) -> dict[VariantKey, str]:
    """Return variant -> "2 of 8 planned seeds" for variants of which not all of these are scored.

    shown_seeds: (variant, seed) of what a paper's displays read; numbers without a seed have None.
    A variant is withheld if planned seeds are among them. The seeds of a variant are those of the
    paper's own plans, or of another paper's if its own name no claim about it.
    """
    seeds_of_variant: dict[VariantKey, set[int | None]] = defaultdict(set)
    for variant, seed in shown_seeds:
        seeds_of_variant[variant].add(seed)
    planned_seeds: dict[VariantKey, list[int]] = {}
    # The paper's own plans come last, so that they count.
    papers = results.catalogue.papers
    for key in sorted(papers, key=lambda key: key == results.paper):
        planned_seeds |= papers[key].list_planned_seeds(results.scale)
    withheld = {}
    for variant in seeds_of_variant.keys() & planned_seeds.keys():
        planned = planned_seeds[variant]
        if not seeds_of_variant[variant] & set(planned):
            continue
        runs = [variant.make_run(seed) for seed in planned]
        files = [results.folder.run(run).evaluation.scores for run in runs]
        scored = sum(file.exists() for file in results.unfinished.drop_files(files))
        if scored < len(planned):
            withheld[variant] = f"{scored} of {len(planned)} planned seeds"
    return withheld
