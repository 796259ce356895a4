"""Splits of data sets: validation sets, size limits, and random samples of examples."""

import math
import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.sources.task_sources import DataOptions


class Example(NamedTuple):
    """One pair of texts.

    The tokens of each side are joined by one space; `subset` is "" if the set has no subsets.
    """

    source: str
    target: str
    subset: str = ""


class SplitOptions(DataOptions):
    """Options of every sequence-to-sequence set.

    validation: `paper` samples the validation set from the test set and keeps it there too (as the
        paper did); `clean` removes it from the test set.
    limit: split -> maximum number of examples, sampled at random. A limit on `test` applies before
        validation is sampled; a limit on `train` keeps every word if possible.
    """

    validation: Literal["paper", "clean"] = "paper"
    validation_fraction: Annotated[float, Field(gt=0, lt=1)] = 0.2
    seed: int = 0
    limit: dict[str, Annotated[int, Field(gt=0)]] = {}


def sample_indices(examples: Sequence[Example], count: int, seed: int, purpose: str) -> list[int]:
    """Sample positions of `count` examples without replacement, sorted.

    Each `purpose` is an independent sample.
    """
    return sorted(
        random.Random(f"{seed}/{purpose}").sample(range(len(examples)), min(count, len(examples)))
    )


def sample_covering_vocabulary(
    examples: Sequence[Example], count: int, seed: int, purpose: str
) -> list[int]:
    """Sample positions like `sample_indices`, but prefer examples that add a word, so that no rare word is missing.

    In SCAN, only one training command contains `jump`. Without it, there is nothing to generalise.
    """
    order = random.Random(f"{seed}/{purpose}").sample(range(len(examples)), len(examples))
    seen: set[str] = set()
    first, rest = [], []
    for i in order:
        words = {*examples[i].source.split(" "), *examples[i].target.split(" ")}
        (rest if words <= seen else first).append(i)
        seen |= words
    return sorted((first + rest)[:count])


def make_splits(
    train: list[Example],
    test: list[Example],
    others: dict[str, list[Example]],
    options: SplitOptions,
) -> tuple[dict[str, list[Example]], list[str]]:
    """Apply the limits and sample `valid` from `test`.

    Returns splits (train, valid, others, test) and notes.
    """
    splits, seed, notes = {"train": train, "test": test, **others}, options.seed, []
    for name, count in options.limit.items():
        if name not in splits:
            raise UserError(
                f"options.limit: no split {name} to limit here; known: {', '.join(splits)}"
            )
        if count < len(splits[name]):
            notes.append(f"{name}: {count} of {len(splits[name])} examples, drawn with seed {seed}")
            choose = sample_covering_vocabulary if name == "train" else sample_indices
            splits[name] = [
                splits[name][i] for i in choose(splits[name], count, seed, f"limit/{name}")
            ]
    test = splits["test"]
    size = math.floor(len(test) * Fraction(str(options.validation_fraction)))
    drawn = sample_indices(test, size, seed, "validation")
    valid = [test[i] for i in drawn]
    share = f"{len(valid)} of {len(test)} test examples, drawn with seed {seed}"
    if options.validation == "clean":
        removed = set(drawn)
        test = [example for i, example in enumerate(test) if i not in removed]
        notes.append(f"valid: {share} and taken out of the test set (clean protocol)")
    else:
        notes.append(f"valid: {share}; they stay inside the test set, as in the paper")
    return {
        "train": splits["train"],
        "valid": valid,
        **{k: splits[k] for k in others},
        "test": test,
    }, notes


def split_by_key(
    rows: Sequence[Any], valid_fraction: float, shared_keys: bool, seed: int = 42
) -> dict[str, list]:
    """Split rows with the fields `source` and `key` into train and valid, so that equal keys are in one split.

    Of each source, `valid_fraction` of its keys, rounded up, is in `valid`. shared_keys: sources
    have many keys in common, so keys that are already in `valid` are not sampled again.
    """
    rng, valid = random.Random(seed), set()
    for source in dict.fromkeys(row.source for row in rows):
        keys = sorted(
            {row.key for row in rows if row.source == source} - (valid if shared_keys else set())
        )
        valid |= set(rng.sample(keys, math.ceil(len(keys) * valid_fraction)))
    return {
        "train": [row for row in rows if row.key not in valid],
        "valid": [row for row in rows if row.key in valid],
    }
