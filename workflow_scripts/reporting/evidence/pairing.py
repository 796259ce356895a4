"""Differences and gains of two sides, paired by seed if their trainings start from the same run or model of the hub.

A seed is then one order of the data and one set of random numbers. Sides with random weights are independent.
"""

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import format_canonical_json
from workflow_scripts.config.catalogue import START, Catalogue, VariantKey, parse_run
from workflow_scripts.config.specs import find_parent_run, resolve_run
from workflow_scripts.evaluation.statistics import Effect, compare_independent, compare_paired


def get_initial_weights(catalogue: Catalogue, variant: VariantKey, scale: str) -> str:
    """Return what the training of the weights of a variant begins with; for random weights the name of the variant."""
    run = parse_run(catalogue, "/".join((*variant, "seed-0")))
    if run.weights not in (None, START):
        parent = find_parent_run(catalogue, run, scale)
        assert parent
        return get_initial_weights(catalogue, parent.unseeded, scale)
    origin = resolve_run(catalogue, run, scale).origin
    return format_canonical_json(origin.model_dump()) if origin else "/".join(variant)


def compute_difference(left: dict[int, float], right: dict[int, float], paired: bool) -> Effect:
    """Compute mean(left) - mean(right), over common seeds if `paired`; UserError if these have none in common."""
    if not paired:
        return compare_independent(list(left.values()), list(right.values()))
    shared = sorted(left.keys() & right.keys())
    if not shared:
        raise UserError(
            "two rows of a table start from the same weights but share no seed; run the same seeds of both"
        )
    return compare_paired([left[seed] for seed in shared], [right[seed] for seed in shared])


def require_same_weights(
    weights: dict[VariantKey, str], one: VariantKey, other: VariantKey, where: str
) -> None:
    """Raise UserError, beginning with `where`, if two measured variants start from different weights."""
    if one in weights and other in weights and weights[one] != weights[other]:
        names = " and ".join("/".join(variant) for variant in (one, other))
        raise UserError(
            f"{where}: {names} start from different weights, so no seeds are paired; show both, and no gain"
        )


def compute_gains(
    scores: dict[int, float], others: dict[int, float], relative: bool, trained_again: bool = True
) -> dict[int, float]:
    """Return seed -> score minus the other side's score of that seed, or in percent of it (NI, Eqn 14 of CARMA).

    Seeds without an other score, or with an other score of 0 in a ratio, are left out. An other side that is not
    `trained_again` is one model with a single seed, with which all seeds are compared.
    """
    if not trained_again and others:
        others = dict.fromkeys(scores, next(iter(others.values())))
    pairs = {seed: (scores[seed], others[seed]) for seed in scores if seed in others}
    if relative:
        return {
            seed: 100 * (ours - theirs) / theirs
            for seed, (ours, theirs) in pairs.items()
            if theirs != 0
        }
    return {seed: ours - theirs for seed, (ours, theirs) in pairs.items()}
