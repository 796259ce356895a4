"""Differences and gains of two sides.

They are paired by seed if the trainings of both sides start from the same run or model of the hub.
A seed is then one order of the data and one set of random numbers. Sides with random weights are
independent.
"""

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import format_canonical_json
from workflow_scripts.common.run_names import START, VariantKey
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.specs import find_parent_run, resolve_run
from workflow_scripts.evaluation.statistics import Effect, compare_independent, compare_paired


def get_initial_weights(catalogue: Catalogue, variant: VariantKey, scale: str) -> str:
    """Return what the training of a variant's weights begins with, as a text to be compared.

    For random weights that is the name of the variant. Given weights are those of their training;
    untrained ones (START) begin with what a training of the variant would begin with.
    """
    run = variant.make_run(seed=0)
    if run.weights not in (None, START):
        parent = find_parent_run(catalogue, run, scale)
        assert parent
        return get_initial_weights(catalogue, parent.variant_key, scale)
    origin = resolve_run(catalogue, run, scale).origin
    if origin is None:
        return str(variant)
    return format_canonical_json(origin.model_dump())


def compute_difference(left: dict[int, float], right: dict[int, float], paired: bool) -> Effect:
    """Compute mean(left) - mean(right), over common seeds if `paired`.

    Raises UserError if paired sides have no seed in common.
    """
    if not paired:
        return compare_independent(list(left.values()), list(right.values()))
    shared = sorted(left.keys() & right.keys())
    if not shared:
        raise UserError(
            "two rows of a table start from the same weights but share no seed; "
            "run the same seeds of both"
        )
    return compare_paired([left[seed] for seed in shared], [right[seed] for seed in shared])


def require_same_weights(
    weights: dict[VariantKey, str], variant: VariantKey, other: VariantKey, place: str
) -> None:
    """Raise UserError, beginning with `place`, if two measured variants start differently."""
    if variant not in weights or other not in weights:
        return
    if weights[variant] == weights[other]:
        return
    rule = "so no seeds are paired; show both, and no gain"
    raise UserError(f"{place}: {variant} and {other} start from different weights, {rule}")


def compute_gains(
    scores: dict[int, float], others: dict[int, float], relative: bool, is_one_model: bool = False
) -> dict[int, float]:
    """Return seed -> score minus the other side's score, or in percent of it (NI, Eqn 14 of CARMA).

    Seeds without an other score, or with an other score of 0 in a ratio, are left out.
    is_one_model: the other side is not trained, so that it has one seed, with which all seeds are
    compared.
    """
    baselines = others
    if is_one_model and others:
        only_score = next(iter(others.values()))
        baselines = dict.fromkeys(scores, only_score)
    gains = {}
    for seed, score in scores.items():
        if seed not in baselines:
            continue
        baseline = baselines[seed]
        if not relative:
            gains[seed] = score - baseline
        elif baseline != 0:
            gains[seed] = 100 * (score - baseline) / baseline
    return gains
