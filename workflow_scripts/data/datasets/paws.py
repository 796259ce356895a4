"""PAWS (Zhang et al. 2019): pairs of sentences of nearly the same words, paraphrases of each other or not.

Options of `prepare` beside those of `data.sentences`:

set: `wiki`     train on PAWS-Wiki's final set, test on the swap-only one, whose every pair differs by swapped words:
                all of it is the subset `swap`.
     `qqp`      train on PAWS-QQP (`data.paws_qqp` makes it from Quora's questions), test as `wiki`.
     `dev_test` where the training set and the swap-only one are not at hand: train on the final set's dev part, test on
                its test part, in which the subset `swap` is the pairs of equal words in another order.
validation: dev_test only: how many pairs of the dev part are kept from training for validation.

Splits: `train`, `valid`, `test` and, but for `dev_test`, `in_distribution` (the final set's test part; of QQP the part
that is not for validation: every other pair of upstream's one set of dev and test).
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import checked
from workflow_scripts.data.datasets import paws_qqp
from workflow_scripts.data.datasets.sentences import (
    Sentence,
    SentenceOptions,
    class_number,
    named_source,
    table,
    taken_out,
    tsv_rows,
    upstream_or_made,
)
from workflow_scripts.data.prepared import TableDataset
from workflow_scripts.data.stand_ins import paws as stand_in

WHERE = "options of workflow_scripts.data.datasets.paws"
FINAL, SWAP = "paws/paws_wiki_labeled_final.tar.gz", "paws/paws_wiki_labeled_swap.tar.gz"
DEV, TEST = "paws/paws_wiki_final_dev.noheader.tsv", "paws/paws_wiki_final_test.noheader.tsv"
COLUMNS = ("id", "sentence1", "sentence2", "label")
LABELS = ["different", "paraphrase"]


class Options(SentenceOptions):
    """See the module's docstring."""

    pairs: Literal["wiki", "qqp", "dev_test"] = Field("wiki", alias="set")
    validation: Annotated[int, Field(gt=0)] = 800


def prepare(options: dict[str, Any], sources: dict[str, Path]) -> TableDataset:
    """The splits above. Raises UserError for wrong options, and when a source is missing or malformed."""
    settings = checked(Options, options, WHERE)
    if settings.origin == "stand_in" or settings.pairs == "dev_test":
        with upstream_or_made(settings.origin, sources, lambda folder: stand_in.write(folder, settings.seed)) as files:
            splits, notes = dev_test(*(named_source(files, [name], WHERE) for name in (DEV, TEST)), settings)
        if settings.origin == "stand_in":
            notes = ["made-up pairs in the format of PAWS", *notes]
        return table(splits, LABELS, settings, notes, "reduced")
    swap = named_source(sources, [SWAP], WHERE)
    test = [pair._replace(subset="swap") for pair in read(swap, "train.tsv", None, "swap")]
    if settings.pairs == "wiki":
        final = named_source(sources, [FINAL], WHERE)
        parts = {"train": "train.tsv", "valid": "dev.tsv", "in_distribution": "test.tsv"}
        splits = {split: read(final, file, None, split) for split, file in parts.items()}
        return table(splits | {"test": test}, LABELS, settings, ["train: PAWS-Wiki final; test: swap-only"])
    index = named_source(sources, [paws_qqp.INDEX], WHERE)
    questions = named_source(sources, [paws_qqp.QUESTIONS], WHERE)
    made, notes = paws_qqp.read(index, questions, named_source(sources, [paws_qqp.PUNKT], WHERE))
    splits = {"train": made["train"], "valid": made["dev_and_test"][::2], "in_distribution": made["dev_and_test"][1::2]}
    return table(splits | {"test": test}, LABELS, settings, [*notes, "test: swap-only pairs of PAWS-Wiki"])


def dev_test(dev: Path, test: Path, settings: Options) -> tuple[dict[str, list[Sentence]], list[str]]:
    """Train and validation from the pairs of one file, test from those of another, and notes on them."""
    pairs = read(dev, dev.name, COLUMNS, "dev")
    if settings.validation >= len(pairs):
        raise UserError(f"{WHERE}: key 'validation' is {settings.validation}; {dev} has {len(pairs)} pairs")
    train, valid = taken_out(pairs, settings.validation, settings.seed, "validation")
    test_pairs = [
        pair._replace(subset="swap" if only_swapped(pair.first, pair.second) else "")
        for pair in read(test, test.name, COLUMNS, "test")
    ]
    swapped = sum(pair.subset == "swap" for pair in test_pairs)
    return {"train": train, "valid": valid, "test": test_pairs}, [
        f"train and valid: PAWS-Wiki's dev part, {len(valid)} of {len(pairs)} pairs for valid; test: its test part",
        f"subset swap: the {swapped} pairs of test with equal words in another order; not upstream's swap-only set",
    ]


def only_swapped(first: str, second: str) -> bool:
    """Whether two sentences have the same words, each as often, whatever their case, in another order."""
    words = first.lower().split(), second.lower().split()
    return words[0] != words[1] and sorted(words[0]) == sorted(words[1])


def read(path: Path, file: str, columns: tuple[str, ...] | None, split: str) -> list[Sentence]:
    """The pairs of a file with the columns id, sentence1, sentence2, label. Raises UserError naming the line."""
    return [
        Sentence(
            f"{split}-{row['id']}",
            row["sentence1"],
            row["sentence2"],
            class_number(row["label"], ("0", "1"), f"{path}: {file}:{line}"),
        )
        for line, row in tsv_rows(path, file, columns)
    ]
