"""What sequence-to-sequence data sets share: drawing validation sets, the vocabulary, Parquet and `dataset.json`."""

import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import write_json
from workflow_scripts.common.validation import Strict

SPECIAL_TOKENS = ["<pad>", "<s>", "</s>", "<unk>"]
UNKNOWN_ID = SPECIAL_TOKENS.index("<unk>")


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


@dataclass
class Prepared:
    """What the `prepare` function of a data module returns.

    protocol: the best that these data allow: `paper`, `reduced` or `stand_in`.
    subset_groups: name of a group -> the subsets in it, for scores over groups of subsets.
    columns: split -> name -> one text a row, beside those of Example.
    files: name -> JSON content.
    whole_targets: splits whose targets are texts that are not made of tokens; their `target_ids` are empty.
    """

    splits: dict[str, list[Example]]
    notes: list[str]
    protocol: str = "paper"
    subset_groups: dict[str, list[str]] = field(default_factory=dict)
    columns: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    files: dict[str, Any] = field(default_factory=dict)
    whole_targets: list[str] = field(default_factory=list)


def draw(examples: Sequence[Example], count: int, seed: int, purpose: str) -> list[int]:
    """Positions of `count` examples drawn without replacement, in rising order; other purposes draw independently."""
    return sorted(random.Random(f"{seed}/{purpose}").sample(range(len(examples)), min(count, len(examples))))


def draw_every_word(examples: Sequence[Example], count: int, seed: int, purpose: str) -> list[int]:
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


def limited(
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
            choose = draw_every_word if name == "train" else draw
            drawn = choose(splits[name], count, seed, f"limit/{name}")
            splits = splits | {name: [splits[name][i] for i in drawn]}
    return splits, notes


def split_up(
    train: list[Example], test: list[Example], others: dict[str, list[Example]], options: SplitOptions
) -> tuple[dict[str, list[Example]], list[str]]:
    """Apply the limits and draw `valid` from `test`. Returns the splits (train, valid, test, others) and notes on them.

    Raises UserError for a limit on a split that does not exist.
    """
    splits, notes = limited({"train": train, "test": test, **others}, options.limit, options.seed)
    test = splits["test"]
    drawn = draw(test, math.floor(len(test) * Fraction(str(options.validation_fraction))), options.seed, "validation")
    valid = [test[i] for i in drawn]
    share = f"{len(valid)} of {len(test)} test examples, drawn with seed {options.seed}"
    if options.validation == "clean":
        removed = set(drawn)
        test = [example for i, example in enumerate(test) if i not in removed]
        notes.append(f"valid: {share} and taken out of the test set (clean protocol)")
    else:
        notes.append(f"valid: {share}; they stay inside the test set, as in the paper")
    return {"train": splits["train"], "valid": valid, **{k: splits[k] for k in others}, "test": test}, notes


def vocabulary(sentences: list[str]) -> list[str]:
    """Index = id. The special tokens, then every token by falling frequency, ties by the alphabet."""
    counts = Counter(token for sentence in sentences for token in sentence.split(" "))
    return SPECIAL_TOKENS + sorted(counts, key=lambda token: (-counts[token], token))


def fill(prepared: Prepared, folder: Path) -> dict[str, Any]:
    """Write one Parquet file per split, `vocabulary.json` and the further files; returns what dataset.json says of
    them."""
    # The catalogue reads the options of this module's users, and must not wait for this.
    import pyarrow
    import pyarrow.parquet

    text, numbers = pyarrow.string(), pyarrow.list_(pyarrow.int32())
    types = {"source": text, "target": text, "subset": text, "source_ids": numbers, "target_ids": numbers}
    train = prepared.splits["train"]
    words = {side: vocabulary([getattr(example, side) for example in train]) for side in ("source", "target")}
    ids = {side: {token: i for i, token in enumerate(tokens)} for side, tokens in words.items()}
    summary = {}
    for name, examples in prepared.splits.items():
        columns: dict[str, list] = {column: [e[i] for e in examples] for i, column in enumerate(Example._fields)}
        for side in ("source", "target"):
            columns[f"{side}_ids"] = [[ids[side].get(t, UNKNOWN_ID) for t in s.split(" ")] for s in columns[side]]
        if name in prepared.whole_targets:
            columns["target_ids"] = [[] for _ in examples]
        more = prepared.columns.get(name, {})
        schema = pyarrow.schema(types | dict.fromkeys(more, text))
        table = pyarrow.Table.from_pydict(columns | more, schema=schema)
        pyarrow.parquet.write_table(table, folder / f"{name}.parquet", compression="zstd")
        numbered = columns["source_ids"] + columns["target_ids"]
        summary[name] = {
            "rows": len(examples),
            "distinct": len({(e.source, e.target) for e in examples}),
            "out_of_vocabulary_tokens": sum(row.count(UNKNOWN_ID) for row in numbered),
            "longest_source": max(map(len, columns["source_ids"]), default=0),
            "longest_target": max(map(len, columns["target_ids"]), default=0),
        }
    for name, made in {"vocabulary.json": words, **prepared.files}.items():
        write_json(folder / name, made)
    return {
        "splits": summary,
        "subset_groups": prepared.subset_groups,
        "vocabulary": {side: len(tokens) for side, tokens in words.items()},
    }
