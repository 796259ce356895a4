"""Splits of sequence-to-sequence data sets: validation sets, limits, and random samples of examples."""

import math
import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import Strict


class Example(NamedTuple):
    """One pair; the tokens of each side are joined by one space. `subset` is "" where a set has no subsets."""

    source: str
    target: str
    subset: str = ""


class SplitOptions(Strict):
    """Options of every sequence-to-sequence set.

    validation: `paper` draws the validation set from the test set and leaves it inside (as the paper did);
        `clean` takes it out of the test set.
    validation_fraction: share of the test set that is drawn, rounded down.
    seed: of every draw (validation, limits, samples).
    limit: at most so many examples of a split, drawn at random; a limit on `test` comes before validation is drawn, and
        a limit on `train` keeps every word if it can.
    """

    validation: Literal["paper", "clean"] = "paper"
    validation_fraction: Annotated[float, Field(gt=0, lt=1)] = 0.2
    seed: int = 0
    limit: dict[str, Annotated[int, Field(gt=0)]] = {}


def sample_indices(examples: Sequence[Example], count: int, seed: int, purpose: str) -> list[int]:
    """Positions of `count` examples drawn without replacement, in rising order; other purposes draw independently."""
    return sorted(random.Random(f"{seed}/{purpose}").sample(range(len(examples)), min(count, len(examples))))


def sample_covering_vocabulary(examples: Sequence[Example], count: int, seed: int, purpose: str) -> list[int]:
    """Like `draw`, but examples with a word that none before them has come first: else a rare word could be missing.

    `jump` stands in no other training command of SCAN than `jump` itself: without it, there is nothing to generalise.
    """
    order = random.Random(f"{seed}/{purpose}").sample(range(len(examples)), len(examples))
    seen: set[str] = set()
    first, rest = [], []
    for i in order:
        words = {*examples[i].source.split(" "), *examples[i].target.split(" ")}
        (rest if words <= seen else first).append(i)
        seen |= words
    return sorted((first + rest)[:count])


def limit_splits(
    splits: dict[str, list[Example]], limit: dict[str, int], seed: int
) -> tuple[dict[str, list[Example]], list[str]]:
    """The splits with at most so many examples, drawn at random, and notes on them.

    Raises UserError for a limit on a split that does not exist.
    """
    notes = []
    for name, count in limit.items():
        if name not in splits:
            raise UserError(f"options.limit: no split {name} to limit here; known: {', '.join(splits)}")
        if count < len(splits[name]):
            notes.append(f"{name}: {count} of {len(splits[name])} examples, drawn with seed {seed}")
            choose = sample_covering_vocabulary if name == "train" else sample_indices
            drawn = choose(splits[name], count, seed, f"limit/{name}")
            splits = splits | {name: [splits[name][i] for i in drawn]}
    return splits, notes


def make_splits(
    train: list[Example], test: list[Example], others: dict[str, list[Example]], options: SplitOptions
) -> tuple[dict[str, list[Example]], list[str]]:
    """Apply the limits and draw `valid` from `test`. Returns the splits (train, valid, test, others) and notes on them.

    Raises UserError for a limit on a split that does not exist.
    """
    splits, notes = limit_splits({"train": train, "test": test, **others}, options.limit, options.seed)
    test = splits["test"]
    drawn = sample_indices(
        test, math.floor(len(test) * Fraction(str(options.validation_fraction))), options.seed, "validation"
    )
    valid = [test[i] for i in drawn]
    share = f"{len(valid)} of {len(test)} test examples, drawn with seed {options.seed}"
    if options.validation == "clean":
        removed = set(drawn)
        test = [example for i, example in enumerate(test) if i not in removed]
        notes.append(f"valid: {share} and taken out of the test set (clean protocol)")
    else:
        notes.append(f"valid: {share}; they stay inside the test set, as in the paper")
    return {"train": splits["train"], "valid": valid, **{k: splits[k] for k in others}, "test": test}, notes
