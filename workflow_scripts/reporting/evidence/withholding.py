"""Planned seeds are shown only when all of them are scored: whoever sees an early one is tempted to stop."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from workflow_scripts.config.catalogue import Catalogue, Run
from workflow_scripts.config.display_schema import VariantKey
from workflow_scripts.config.paths import evaluation_folder


def find_withheld(
    catalogue: Catalogue, paper: str, scale: str, shown: Iterable[tuple], results: Path
) -> dict[VariantKey, str]:
    """Return variant -> "2 of 8 planned seeds" for variants with planned seeds among `shown` before all are scored.

    shown: (task, method, variant, seed) of what a paper's displays read; numbers without a seed have None.
    results: folder of the scale, where the planned runs are looked for. The seeds of a variant are those of the paper's
    own plans, or of another paper's if its own name no claim about it.
    """
    seeds: dict[VariantKey, set[int]] = defaultdict(set)
    for *variant, seed in shown:
        seeds[tuple(variant)].add(seed)
    planned: dict[VariantKey, list[int]] = {}
    for key in sorted(
        catalogue.papers, key=lambda key: key == paper
    ):  # its own plan last, so that this one counts
        planned |= catalogue.papers[key].list_planned_seeds(scale)
    withheld = {}
    for variant in seeds.keys() & planned.keys():
        expected = planned[variant]
        files = [
            results / evaluation_folder(Run(*variant, seed)) / "scores.csv" for seed in expected
        ]
        done = sum(file.exists() for file in files)
        if seeds[variant] & set(expected) and done < len(expected):
            withheld[variant] = f"{done} of {len(expected)} planned seeds"
    return withheld
