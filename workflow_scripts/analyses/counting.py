"""The most frequent of counted names."""

from collections import Counter


def find_most_frequent(counts: Counter[str]) -> str:
    """Return the name with the highest count, of equals the first in the alphabet."""
    return min(counts, key=lambda name: (-counts[name], name))
