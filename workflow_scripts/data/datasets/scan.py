"""SCAN (Lake and Baroni 2018): the splits defined by its grammar, and training sets with more primitives.

The grammar (figure 1 and appendix) generates every command with its actions:

C -> S and S | S after S | S        S -> V twice | V thrice | V
V -> D1 opposite D2 | D1 around D2 | D | U
D -> U left | U right | turn left | turn right        U -> walk | look | run | jump
"""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import Field, PositiveInt

from workflow_scripts.data.prepared import Seq2SeqDataset
from workflow_scripts.data.sources.archives import read_numbered_lines
from workflow_scripts.data.splits import Example, SplitOptions, make_splits, sample_indices

PRIMITIVES = ["walk", "look", "run", "jump"]
DIRECTIONS = ["left", "right"]
REPETITIONS = {"": 1, " twice": 2, " thrice": 3}
CONTEXT_PRIMITIVES = ["walk", "look", "run"]
LONE_LINES = 12_000
CONTEXT_SENTENCES = 85_905  # at most; those of add_jump_2x


class Renaming(NamedTuple):
    """Numbers of renamed copies of each primitive, and of lines per lone primitive."""

    multiple: int
    atomic_copies: int


class Options(SplitOptions):
    """The set and its sizes.

    None means not set, so an option that has no meaning for the set can be refused.

    set: `add_jump` trains on all commands without `jump`, and on `jump` alone, repeated until it is
        a tenth of the training set, and tests on all other commands with `jump`. `around_right`
        (Loula et al. 2018) trains on all commands without `around right` and tests on those that
        have it with a primitive other than `turn`. `add_jump_2x` (Jiang et al. 2022) has two more
        copies of each primitive: `walk1`, ... `complexity` (Zhou et al. 2023) has `multiple` more
        copies: all commands of SCAN, the others sampled; 1 is add_jump itself.
    from: `upstream` reads upstream's files (for add_jump_2x and complexity, its test file).
    atomic_copies: for more primitives. Number of copies of each lone primitive. The default keeps
        the total of these lines near 12,000: 1000 copies at 2x, 142 at 20x, 14 at 200x.
    in_distribution: number of distinct training commands in the split `in_distribution`.
    """

    set: Literal["add_jump", "around_right", "add_jump_2x", "complexity"]
    origin: Literal["grammar", "upstream"] = Field("grammar", alias="from")
    multiple: PositiveInt | None = None
    atomic_copies: PositiveInt | None = None
    in_distribution: PositiveInt = 500


def prepare(settings: Options, sources: dict[str, Path]) -> Seq2SeqDataset:
    """Prepare train, valid, in_distribution and test.

    Raises UserError for wrong options or a missing source.
    """
    renaming = resolve_renaming(settings)
    held_out = "around right" if settings.set == "around_right" else "jump"
    if settings.origin == "upstream":
        name = "template_around_right" if settings.set == "around_right" else "addprim_jump"
        test = read_scan(settings.find_source(sources, f"scan/tasks_test_{name}.txt"))
        train = (
            []
            if renaming
            else read_scan(settings.find_source(sources, f"scan/tasks_train_{name}.txt"))
        )
    else:
        train, test = split_commands(held_out)
    notes, protocol = [], "reduced" if settings.limit else "paper"
    if renaming:
        train, complete, notes = make_renamed_training_set(renaming, settings.seed)
        # The number and choice of sentences in the paper's 20x and 200x sets are unknown, so they
        # are `reduced`.
        protocol = protocol if complete else "reduced"
    splits, drawn = make_splits(train, test, {}, settings)
    distinct = sorted(set(splits["train"]))
    fit = [
        distinct[i]
        for i in sample_indices(
            distinct, settings.in_distribution, settings.seed, "in_distribution"
        )
    ]
    drawn.append(
        f"in_distribution: {len(fit)} of {len(distinct)} distinct training commands, drawn with seed {settings.seed}; "
        "they stay in the training set, so this split shows the fit"
    )
    return Seq2SeqDataset({**splits, "in_distribution": fit}, notes + drawn, protocol)


def resolve_renaming(settings: Options) -> Renaming | None:
    """Return the sizes for a set with more primitives, else None.

    Raises UserError for options without meaning.
    """
    renamed = settings.set == "add_jump_2x" or (
        settings.set == "complexity" and settings.multiple != 1
    )
    for option, allowed in {
        "multiple": settings.set == "complexity",
        "atomic_copies": renamed,
    }.items():
        if getattr(settings, option) is not None and not allowed:
            alone = " with multiple 1" if settings.set == "complexity" else ""
            raise settings.make_error(
                f"key '{option}' means nothing for set {settings.set}{alone}; leave it out"
            )
    if not renamed:
        return None
    multiple = 2 if settings.set == "add_jump_2x" else settings.multiple
    if multiple is None:
        raise settings.make_error(
            "set complexity needs the key 'multiple': 1, 2, 20 or 200 in the paper"
        )
    return Renaming(
        multiple, settings.atomic_copies or max(1, LONE_LINES // (len(PRIMITIVES) * (multiple + 1)))
    )


def split_commands(phrase: str) -> tuple[list[Example], list[Example]]:
    """Return (train, test) of upstream's split: train has `phrase` only alone, in 1 of 10 lines if it is a command."""
    train, lone, test = [], [], []
    for pair in list_commands(PRIMITIVES):
        command = f" {pair[0]} "
        if f" {phrase} " not in command:
            train.append(Example(*pair))
        elif pair[0] == phrase:
            lone.append(Example(*pair))
        elif f" turn {phrase} " not in command:  # `turn around right` is in neither
            test.append(Example(*pair))
    return train + lone * (len(train) // 9), test


def make_renamed_training_set(
    renaming: Renaming, seed: int
) -> tuple[list[Example], bool, list[str]]:
    """Build the add_jump training set over more primitives.

    Returns (train, whether it has all contexts, notes).

    Context sentences use walk, look, run and their renamed copies (`walk2` -> `I_WALK2`), never
    `jump`, `jump1`, ... With 2 copies of each primitive, alone 1000 times, this gives the 97,906
    lines of Jiang et al. 2022, whose generator is not published.
    """
    numbers = ["", *map(str, range(1, renaming.multiple + 1))]
    parts = list_phrases([word + number for word in CONTEXT_PRIMITIVES for number in numbers])
    context, total = sample_contexts(parts, seed), count_commands(parts)
    lone = [Example(word + n, f"I_{word.upper()}{n}") for word in PRIMITIVES for n in numbers]
    jump = [Example("jump", "I_JUMP")]
    sampled = "" if len(context) == total else f", those of SCAN and others drawn with seed {seed}"
    notes = [
        f"train: {len(context)} of {total} context sentences over {len(CONTEXT_PRIMITIVES) * len(numbers)} primitives"
        f"{sampled}; a reconstruction, since the paper's generator is not published",
        f"train: {len(lone)} lone primitives, {renaming.atomic_copies} x each, and jump once more; "
        f"jump and its {renaming.multiple} renamed copies occur only alone",
    ]
    return context + lone * renaming.atomic_copies + jump, len(context) == total, notes


def sample_contexts(parts: Sequence[tuple[str, str]], seed: int) -> list[Example]:
    """Return all commands over the phrases `parts`; if too many, those of SCAN and a uniform sample."""
    total = count_commands(parts)
    if total <= CONTEXT_SENTENCES:
        return [Example(*get_command(parts, index)) for index in range(total)]
    context = [Example(*pair) for pair in list_commands(CONTEXT_PRIMITIVES)]
    known = set(context)
    # A sample of this size is enough: at most len(context) of it can be commands of SCAN, which are
    # skipped.
    for index in random.Random(f"{seed}/sentences").sample(range(total), CONTEXT_SENTENCES):
        example = Example(*get_command(parts, index))
        if len(context) < CONTEXT_SENTENCES and example not in known:
            context.append(example)
    return context


def read_scan(path: Path) -> list[Example]:
    """Read lines `IN: command OUT: actions`, with repeated ones."""
    return [
        Example(*line.removeprefix("IN: ").split(" OUT: ")) for _, line in read_numbered_lines(path)
    ]


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
    """Return a command over the phrases S by index: all phrases, then `x and y`, then `x after y` (y acts first)."""
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
