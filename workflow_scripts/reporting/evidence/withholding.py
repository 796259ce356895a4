"""Planned seeds are shown only when all are scored: whoever sees an early one may stop."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from workflow_scripts.common.result_folders import ScaleFolder
from workflow_scripts.common.run_names import VariantKey
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.provenance.unfinished import NOTHING, Unfinished


def find_withheld(
    catalogue: Catalogue,
    paper: str,
    scale: str,
    shown_seeds: Iterable[tuple[VariantKey, int | None]],
    results: Path,
    unfinished: Unfinished = NOTHING,
) -> dict[VariantKey, str]:
    """Return variant -> "2 of 8 planned seeds" for variants of which not all of these are scored.

    shown_seeds: (variant, seed) of what a paper's displays read; numbers without a seed have None.
    A variant is withheld if planned seeds are among them. results: folder of the scale, where the
    planned runs are looked for, without the `unfinished` ones. The seeds of a variant are those of
    the paper's own plans, or of another paper's if its own name no claim about it.
    """
    seeds_of_variant: dict[VariantKey, set[int | None]] = defaultdict(set)
    for variant, seed in shown_seeds:
        seeds_of_variant[variant].add(seed)
    planned_seeds: dict[VariantKey, list[int]] = {}
    # The paper's own plans come last, so that they count.
    for key in sorted(catalogue.papers, key=lambda key: key == paper):
        planned_seeds |= catalogue.papers[key].list_planned_seeds(scale)
    withheld = {}
    for variant in seeds_of_variant.keys() & planned_seeds.keys():
        planned = planned_seeds[variant]
        if not seeds_of_variant[variant] & set(planned):
            continue
        runs = [variant.make_run(seed) for seed in planned]
        files = [ScaleFolder(results).run(run).evaluation.scores for run in runs]
        scored = sum(file.exists() for file in unfinished.drop_files(files))
        if scored < len(planned):
            withheld[variant] = f"{scored} of {len(planned)} planned seeds"
    return withheld
