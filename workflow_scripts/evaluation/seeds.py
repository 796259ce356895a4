"""The seeds of scores."""

from collections.abc import Iterable


def list_common_seeds(scores: Iterable[Iterable[int]]) -> list[int]:
    """List the seeds that all of these scores have, lowest first; none without scores.

    scores: the seeds of each, or its values by seed.
    """
    seeds_of_scores = [set(seeds) for seeds in scores]
    if not seeds_of_scores:
        return []
    return sorted(set.intersection(*seeds_of_scores))
