"""How messages name things."""


def count_nouns(count: int, noun: str) -> str:
    """Return a number with its noun, such as `1 run` or `2 runs`."""
    return f"1 {noun}" if count == 1 else f"{count} {noun}s"
