"""PAWS (Zhang et al. 2019): pairs of sentences with nearly the same words, paraphrases or not."""

from pathlib import Path
from typing import Literal

from pydantic import Field, PositiveInt

from workflow_scripts.data.datasets.sentences import (
    Sentence,
    SentenceOptions,
    build_table,
    parse_class,
    read_tsv,
    split_off,
)
from workflow_scripts.data.prepared import TableDataset
from workflow_scripts.data.stand_ins import paws as stand_in

FINAL, SWAP = "paws/paws_wiki_labeled_final.tar.gz", "paws/paws_wiki_labeled_swap.tar.gz"
DEV, TEST = "paws/paws_wiki_final_dev.noheader.tsv", "paws/paws_wiki_final_test.noheader.tsv"
COLUMNS = ("id", "sentence1", "sentence2", "label")
LABELS = ["different", "paraphrase"]


class Options(SentenceOptions):
    """The set, and for `dev_test` the number of pairs of the dev part used for validation instead of training.

    `wiki` trains on PAWS-Wiki's final set and tests on its swap-only set, where each pair differs
    by swapped words (subset `swap`). `dev_test`, for use without these sets, trains on the final
    set's dev part and tests on its test part, where the subset `swap` contains the pairs with equal
    words in another order.
    """

    pairs: Literal["wiki", "dev_test"] = Field("wiki", alias="set")
    validation: PositiveInt = 800


def prepare(settings: Options, sources: dict[str, Path]) -> TableDataset:
    """Prepare the splits. Raises UserError for a missing or malformed source."""
    if settings.origin == "stand_in" or settings.pairs == "dev_test":
        with settings.open_sources(sources, stand_in.write_paws, settings.seed) as files:
            splits, notes = split_dev_and_test(
                *(settings.find_source(files, name) for name in (DEV, TEST)), settings
            )
        return build_table(splits, LABELS, settings, notes, "reduced")
    swap = settings.find_source(sources, SWAP)
    test = [pair._replace(subset="swap") for pair in read_paws(swap, "train.tsv", (), "swap")]
    final = settings.find_source(sources, FINAL)
    parts = {"train": "train.tsv", "valid": "dev.tsv", "in_distribution": "test.tsv"}
    splits = {split: read_paws(final, file, (), split) for split, file in parts.items()}
    return build_table(
        splits | {"test": test}, LABELS, settings, ["train: PAWS-Wiki final; test: swap-only"]
    )


def split_dev_and_test(
    dev: Path, test: Path, settings: Options
) -> tuple[dict[str, list[Sentence]], list[str]]:
    """Build train and valid from the pairs of one file and test from another.

    Returns the splits and notes.
    """
    pairs = read_paws(dev, dev.name, COLUMNS, "dev")
    if settings.validation >= len(pairs):
        raise settings.make_error(
            f"key 'validation' is {settings.validation}; {dev} has {len(pairs)} pairs"
        )
    train, valid = split_off(pairs, settings.validation, settings.seed, "validation")
    test_pairs = [
        pair._replace(subset="swap" if is_word_swap(pair.first, pair.second) else "")
        for pair in read_paws(test, test.name, COLUMNS, "test")
    ]
    swapped = sum(pair.subset == "swap" for pair in test_pairs)
    return {"train": train, "valid": valid, "test": test_pairs}, [
        f"train and valid: PAWS-Wiki's dev part, {len(valid)} of {len(pairs)} pairs for valid; test: its test part",
        f"subset swap: the {swapped} pairs of test with equal words in another order; not upstream's swap-only set",
    ]


def is_word_swap(first: str, second: str) -> bool:
    """Return whether two sentences have the same words, equally often, in another order; case is ignored."""
    words = first.lower().split(), second.lower().split()
    return words[0] != words[1] and sorted(words[0]) == sorted(words[1])


def read_paws(path: Path, file: str, columns: tuple[str, ...], split: str) -> list[Sentence]:
    """Read the pairs of a file, with a header line unless `columns` is given.

    Raises UserError with a wrong line.
    """
    found = []
    for line, row in read_tsv(path, file, COLUMNS, columns):
        label = parse_class(row["label"], ("0", "1"), f"{path}: {file}:{line}")
        found.append(Sentence(f"{split}-{row['id']}", row["sentence1"], row["sentence2"], label))
    return found
