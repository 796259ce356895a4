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
    """Sample positions of up to `count` examples without replacement, sorted.

    Each `purpose` is an independent sample.
    """
    rng = random.Random(f"{seed}/{purpose}")
    size = min(count, len(examples))
    return sorted(rng.sample(range(len(examples)), size))


def sample_covering_vocabulary(
    examples: Sequence[Example], count: int, seed: int, purpose: str
) -> list[int]:
    """Sample positions like `sample_indices`, but prefer examples that add a word.

    So no rare word is missing. In SCAN, only one training command contains `jump`. Without it,
    there is nothing to generalise.
    """
    rng = random.Random(f"{seed}/{purpose}")
    seen: set[str] = set()
    adding_words = []
    others = []
    for position in rng.sample(range(len(examples)), len(examples)):
        example = examples[position]
        words = {*example.source.split(" "), *example.target.split(" ")}
        if words <= seen:
            others.append(position)
        else:
            adding_words.append(position)
        seen |= words
    return sorted((adding_words + others)[:count])


def make_splits(
    train: list[Example],
    test: list[Example],
    others: dict[str, list[Example]],
    options: SplitOptions,
) -> tuple[dict[str, list[Example]], list[str]]:
    """Apply the limits and sample `valid` from `test`.

    others: further splits, which only a limit changes. Returns splits (train, valid, others, test)
    and notes. Raises UserError for a limit on an unknown split.
    """
    seed = options.seed
    limited, notes = limit_splits({"train": train, "test": test, **others}, options)
    limited_test = limited["test"]
    size = math.floor(len(limited_test) * Fraction(str(options.validation_fraction)))
    positions = sample_indices(limited_test, size, seed, "validation")
    valid = [limited_test[position] for position in positions]
    final_test = limited_test
    share = f"{len(valid)} of {len(limited_test)} test examples, drawn with seed {seed}"
    if options.validation == "clean":
        moved = set(positions)
        final_test = []
        for position, example in enumerate(limited_test):
            if position not in moved:
                final_test.append(example)
        notes.append(f"valid: {share} and taken out of the test set (clean protocol)")
    else:
        notes.append(f"valid: {share}; they stay inside the test set, as in the paper")
    splits = {"train": limited["train"], "valid": valid}
    for name in others:
        splits[name] = limited[name]
    splits["test"] = final_test
    return splits, notes


def limit_splits(
    splits: dict[str, list[Example]], options: SplitOptions
) -> tuple[dict[str, list[Example]], list[str]]:
    """Apply the limits. Returns the splits and notes. Raises UserError for an unknown split."""
    limited = dict(splits)
    notes = []
    for name, count in options.limit.items():
        if name not in splits:
            raise UserError(
                f"options.limit: no split {name} to limit here; known: {', '.join(splits)}"
            )
        examples = splits[name]
        if count >= len(examples):
            continue
        sample = sample_indices
        if name == "train":
            sample = sample_covering_vocabulary
        positions = sample(examples, count, options.seed, f"limit/{name}")
        limited[name] = [examples[position] for position in positions]
        notes.append(f"{name}: {count} of {len(examples)} examples, drawn with seed {options.seed}")
    return limited, notes


def split_by_key(
    rows: Sequence[Any], valid_fraction: float, shared_keys: bool, seed: int = 42
) -> dict[str, list]:
    """Split rows with the fields `source` and `key` so that equal keys are in one split.

    The splits are `train` and `valid`. Of each source, `valid_fraction` of its keys, rounded up, is
    in `valid`. shared_keys: sources have many keys in common, so keys that are already in `valid`
    are not sampled again.
    """
    rng = random.Random(seed)
    keys_by_source: dict[str, set] = {}
    for row in rows:
        keys_by_source.setdefault(row.source, set()).add(row.key)
    valid_keys: set = set()
    for keys in keys_by_source.values():
        candidates = keys
        if shared_keys:
            candidates = keys - valid_keys
        count = math.ceil(len(candidates) * valid_fraction)
        valid_keys.update(rng.sample(sorted(candidates), count))
    return {
        "train": [row for row in rows if row.key not in valid_keys],
        "valid": [row for row in rows if row.key in valid_keys],
    }
