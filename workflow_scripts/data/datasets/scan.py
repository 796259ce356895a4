"""SCAN (Lake and Baroni 2018): the splits of its grammar, and training sets with more primitives.

The grammar (figure 1 and appendix) generates every command with its actions:

C -> S and S | S after S | S        S -> V twice | V thrice | V
V -> D1 opposite D2 | D1 around D2 | D | U
D -> U left | U right | turn left | turn right        U -> walk | look | run | jump
"""

import random
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import Field, PositiveInt

from workflow_scripts.common.errors import UserError
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
    longest_actions: leaves out commands with more actions, from every split.
    in_distribution: number of distinct training commands in the split `in_distribution`.
    hold_out: takes these commands out of the training set. No lone primitive is one of them, since
        training shows some primitives nowhere else.
    """

    set: Literal["add_jump", "around_right", "add_jump_2x", "complexity"]
    origin: Literal["grammar", "upstream"] = Field(  # pyright: ignore[reportIncompatibleVariableOverride]
        "grammar", alias="from"
    )
    multiple: PositiveInt | None = None
    atomic_copies: PositiveInt | None = None
    longest_actions: PositiveInt | None = None
    in_distribution: PositiveInt = 500
    hold_out: bool = False

    def list_splits(self) -> list[str]:
        """Return the names of the splits."""
        return ["train", "valid", "in_distribution", "test"]


def prepare(settings: Options, sources: dict[str, Path]) -> Seq2SeqDataset:
    """Prepare train, valid, in_distribution and test.

    Raises UserError for wrong options or a missing source.
    """
    renaming = resolve_renaming(settings)
    train, test = load_commands(settings, sources)
    notes = []
    protocol = "paper"
    if settings.limit or settings.longest_actions or settings.hold_out:
        protocol = "reduced"
    if renaming:
        train, is_complete, notes = make_renamed_training_set(renaming, settings.seed)
        # The number and choice of sentences in the paper's 20x and 200x sets are unknown, so they
        # are `reduced`.
        if not is_complete:
            protocol = "reduced"
    if settings.longest_actions:
        train = select_short_commands(train, settings.longest_actions)
        test = select_short_commands(test, settings.longest_actions)
        notes.append(f"commands with more than {settings.longest_actions} actions are left out")
    held_out = []
    if settings.hold_out:
        candidates = {example for example in train if " " in example.source}
        held_out = draw_in_distribution(candidates, settings)
        train = remove_examples(train, held_out)
    splits, notes_on_splits = make_splits(train, test, {}, settings)
    notes += notes_on_splits
    if settings.hold_out:
        splits["in_distribution"] = held_out
        notes.append(
            f"in_distribution: {len(held_out)} commands, drawn with seed {settings.seed} and taken "
            "out of the training set"
        )
        return Seq2SeqDataset(splits, notes, protocol)
    distinct = set(splits["train"])
    splits["in_distribution"] = draw_in_distribution(distinct, settings)
    notes.append(
        f"in_distribution: {len(splits['in_distribution'])} of {len(distinct)} distinct training "
        f"commands, drawn with seed {settings.seed}; they stay in the training set, so this split "
        "shows the fit"
    )
    return Seq2SeqDataset(splits, notes, protocol)


def draw_in_distribution(candidates: Collection[Example], settings: Options) -> list[Example]:
    """Draw the split `in_distribution` from distinct commands."""
    examples = sorted(candidates)
    positions = sample_indices(examples, settings.in_distribution, settings.seed, "in_distribution")
    return [examples[position] for position in positions]


def remove_examples(examples: Sequence[Example], removed: Sequence[Example]) -> list[Example]:
    """Return the examples without any copy of those in `removed`."""
    absent = set(removed)
    return [example for example in examples if example not in absent]


def select_short_commands(examples: Sequence[Example], longest: int) -> list[Example]:
    """Return the commands of at most `longest` actions."""
    return [example for example in examples if len(example.target.split(" ")) <= longest]


def load_commands(
    settings: Options, sources: dict[str, Path]
) -> tuple[list[Example], list[Example]]:
    """Return (train, test) of the grammar or of upstream's files.

    For the sets with more primitives `prepare` uses `make_renamed_training_set` in place of
    `train`, which is then empty with upstream's files, since no training file is read.
    """
    if settings.origin == "grammar":
        return split_commands("around right" if settings.set == "around_right" else "jump")
    name = "addprim_jump"
    if settings.set == "around_right":
        name = "template_around_right"
    test = read_scan(settings.find_source(sources, f"scan/tasks_test_{name}.txt"))
    train = []
    if not resolve_renaming(settings):
        train = read_scan(settings.find_source(sources, f"scan/tasks_train_{name}.txt"))
    return train, test


def resolve_renaming(settings: Options) -> Renaming | None:
    """Return the sizes for a set with more primitives, else None.

    Raises UserError for options without meaning.
    """
    is_complexity = settings.set == "complexity"
    is_renamed = settings.set == "add_jump_2x" or (is_complexity and settings.multiple != 1)
    if settings.multiple is not None and not is_complexity:
        raise make_option_error(settings, "multiple")
    if settings.atomic_copies is not None and not is_renamed:
        raise make_option_error(settings, "atomic_copies")
    if not is_renamed:
        return None
    multiple = settings.multiple
    if settings.set == "add_jump_2x":
        multiple = 2
    if multiple is None:
        raise settings.make_error(
            "set complexity needs the key 'multiple': 1, 2, 20 or 200 in the paper"
        )
    copies = settings.atomic_copies
    if copies is None:
        n_lone_primitives = len(PRIMITIVES) * (multiple + 1)
        copies = max(1, LONE_LINES // n_lone_primitives)
    return Renaming(multiple, copies)


def make_option_error(settings: Options, option: str) -> UserError:
    """Return the error that says that an option means nothing for the set."""
    name = settings.set
    if name == "complexity":
        name = "complexity with multiple 1"
    return settings.make_error(f"key '{option}' means nothing for set {name}; leave it out")


def split_commands(phrase: str) -> tuple[list[Example], list[Example]]:
    """Return (train, test) of upstream's split: train has `phrase` only alone.

    If it is a command, it is repeated until it is 1 of 10 lines of train.
    """
    train = []
    lone = []
    test = []
    for command, actions in list_commands(PRIMITIVES):
        example = Example(command, actions)
        padded = f" {command} "
        if f" {phrase} " not in padded:
            train.append(example)
        elif command == phrase:
            lone.append(example)
        elif f" turn {phrase} " not in padded:  # `turn around right` is in neither
            test.append(example)
    copies = len(train) // 9
    return train + lone * copies, test


def make_renamed_training_set(
    renaming: Renaming, seed: int
) -> tuple[list[Example], bool, list[str]]:
    """Build the add_jump training set over more primitives.

    Returns (train, whether it has all contexts, notes).

    Context sentences use walk, look, run and their renamed copies (`walk2` -> `I_WALK2`), never
    `jump`, `jump1`, ... With 2 copies of each primitive, alone 1000 times, this gives the 97,906
    lines of Jiang et al. 2022, whose generator is not published.
    """
    suffixes = ["", *map(str, range(1, renaming.multiple + 1))]
    context_primitives = []
    for word in CONTEXT_PRIMITIVES:
        context_primitives += [word + suffix for suffix in suffixes]
    lone = []
    for word in PRIMITIVES:
        lone += [Example(word + suffix, f"I_{word.upper()}{suffix}") for suffix in suffixes]
    phrases = list_phrases(context_primitives)
    total = count_commands(phrases)
    context = sample_contexts(phrases, seed)
    is_complete = len(context) == total
    sampled = ""
    if not is_complete:
        sampled = f", those of SCAN and others drawn with seed {seed}"
    notes = [
        f"train: {len(context)} of {total} context sentences over {len(context_primitives)} "
        f"primitives{sampled}; a reconstruction, since the paper's generator is not published",
        f"train: {len(lone)} lone primitives, {renaming.atomic_copies} x each, and jump once more; "
        f"jump and its {renaming.multiple} renamed copies occur only alone",
    ]
    train = context + lone * renaming.atomic_copies + [Example("jump", "I_JUMP")]
    return train, is_complete, notes


def sample_contexts(phrases: Sequence[tuple[str, str]], seed: int) -> list[Example]:
    """Return all commands over the phrases, or CONTEXT_SENTENCES of them if there are more.

    These are all commands of SCAN, and a uniform sample of the others.
    """
    total = count_commands(phrases)
    if total <= CONTEXT_SENTENCES:
        return [Example(*get_command(phrases, index)) for index in range(total)]
    context = [Example(*pair) for pair in list_commands(CONTEXT_PRIMITIVES)]
    of_scan = set(context)
    # A sample of this size is enough: at most len(context) of it can be commands of SCAN, which are
    # skipped.
    for index in random.Random(f"{seed}/sentences").sample(range(total), CONTEXT_SENTENCES):
        if len(context) == CONTEXT_SENTENCES:
            break
        example = Example(*get_command(phrases, index))
        if example not in of_scan:
            context.append(example)
    return context


def read_scan(path: Path) -> list[Example]:
    """Read lines `IN: command OUT: actions`, with repeated ones."""
    examples = []
    for _number, line in read_numbered_lines(path):
        command, actions = line.removeprefix("IN: ").split(" OUT: ")
        examples.append(Example(command, actions))
    return examples


def iterate_verb_phrases(primitives: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield V, pairs (command, actions), for each primitive and for `turn`.

    `turn` has no action of its own, and it needs a direction.
    """
    for word in [*primitives, "turn"]:
        act = []
        if word != "turn":
            act = [f"I_{word.upper()}"]
            yield word, act
        for direction in DIRECTIONS:
            turn = [f"I_TURN_{direction.upper()}"]
            yield f"{word} {direction}", turn + act
            yield f"{word} opposite {direction}", turn + turn + act
            yield f"{word} around {direction}", (turn + act) * 4


def list_phrases(primitives: Sequence[str]) -> list[tuple[str, str]]:
    """Return S, pairs (command, actions): 3 (7 m + 6) of them over m primitives."""
    phrases = []
    for command, actions in iterate_verb_phrases(primitives):
        for adverb, times in REPETITIONS.items():
            phrases.append((command + adverb, " ".join(actions * times)))
    return phrases


def count_commands(phrases: Sequence[tuple[str, str]]) -> int:
    """Count the commands C over the phrases S: |S| + 2 |S|^2."""
    return len(phrases) + 2 * len(phrases) ** 2


def get_command(phrases: Sequence[tuple[str, str]], index: int) -> tuple[str, str]:
    """Return a command over the phrases S by index.

    First come all phrases, then `x and y`, then `x after y` (y acts first).
    """
    size = len(phrases)
    if index < size:
        return phrases[index]
    conjunction, pair = divmod(index - size, size**2)
    first_index, second_index = divmod(pair, size)
    first, does_first = phrases[first_index]
    second, does_second = phrases[second_index]
    if conjunction == 0:
        return f"{first} and {second}", f"{does_first} {does_second}"
    return f"{first} after {second}", f"{does_second} {does_first}"


def list_commands(primitives: Sequence[str]) -> list[tuple[str, str]]:
    """Return all commands over the primitives: 20,910 over the four of SCAN."""
    phrases = list_phrases(primitives)
    return [get_command(phrases, index) for index in range(count_commands(phrases))]
