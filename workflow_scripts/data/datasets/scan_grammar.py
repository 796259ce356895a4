"""The grammar of SCAN (Lake and Baroni 2018, figure 1 and appendix), which generates every command with its actions.

C -> S and S | S after S | S        S -> V twice | V thrice | V
V -> D1 opposite D2 | D1 around D2 | D | U
D -> U left | U right | turn left | turn right        U -> walk | look | run | jump
"""

from collections.abc import Iterator, Sequence

PRIMITIVES = ["walk", "look", "run", "jump"]
DIRECTIONS = ["left", "right"]
REPETITIONS = {"": 1, " twice": 2, " thrice": 3}


def iterate_verb_phrases(primitives: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield V, pairs (command, actions), for each primitive and for `turn`, which needs a direction."""
    for word in [*primitives, "turn"]:
        act = [] if word == "turn" else [f"I_{word.upper()}"]
        if act:
            yield word, act
        for direction in DIRECTIONS:
            turn = [f"I_TURN_{direction.upper()}"]
            yield f"{word} {direction}", turn + act
            yield f"{word} opposite {direction}", turn + turn + act
            yield f"{word} around {direction}", (turn + act) * 4


def list_phrases(primitives: Sequence[str]) -> list[tuple[str, str]]:
    """Return S, pairs (command, actions): 3 (7 m + 6) of them over m primitives."""
    return [
        (command + adverb, " ".join(actions * times))
        for command, actions in iterate_verb_phrases(primitives)
        for adverb, times in REPETITIONS.items()
    ]


def count_commands(parts: Sequence[tuple[str, str]]) -> int:
    """Count the commands C over the phrases S: |S| + 2 |S|^2."""
    return len(parts) + 2 * len(parts) ** 2


def get_command(parts: Sequence[tuple[str, str]], index: int) -> tuple[str, str]:
    """Return command `index` of `count(parts)`: first all phrases, then `x and y`, then `x after y` (y acts first)."""
    if index < len(parts):
        return parts[index]
    conjunction, pair = divmod(index - len(parts), len(parts) ** 2)
    (first, does_first), (second, does_second) = (parts[i] for i in divmod(pair, len(parts)))
    if conjunction == 0:
        return f"{first} and {second}", f"{does_first} {does_second}"
    return f"{first} after {second}", f"{does_second} {does_first}"


def list_commands(primitives: Sequence[str]) -> list[tuple[str, str]]:
    """Return all commands over the primitives: 20,910 over the four of SCAN."""
    parts = list_phrases(primitives)
    return [get_command(parts, index) for index in range(count_commands(parts))]
