"""PAWS (Zhang et al. 2019): pairs of sentences with nearly the same words, paraphrases or not."""

from pathlib import Path
from typing import Literal

from pydantic import Field, PositiveInt

from workflow_scripts.data.datasets.sentences import (
    Sentence,
    SentenceOptions,
    build_limited_table,
    parse_class,
    read_tsv,
    split_off,
)
from workflow_scripts.data.prepared import TableDataset
from workflow_scripts.data.stand_ins import paws as stand_in

FINAL = "paws/paws_wiki_labeled_final.tar.gz"
SWAP = "paws/paws_wiki_labeled_swap.tar.gz"
DEV = "paws/paws_wiki_final_dev.noheader.tsv"
TEST = "paws/paws_wiki_final_test.noheader.tsv"
COLUMNS = ("id", "sentence1", "sentence2", "label")
LABELS = ["different", "paraphrase"]


class Options(SentenceOptions):
    """The set, and for `dev_test` the number of pairs of the dev part used for validation.

    `wiki` trains on PAWS-Wiki's final set and tests on its swap-only set, where each pair differs
    by swapped words (subset `swap`). `dev_test`, for use without these sets, trains on the final
    set's dev part and tests on its test part, where the subset `swap` contains the pairs with equal
    words in another order.
    """

    pairs: Literal["wiki", "dev_test"] = Field("wiki", alias="set")
    validation: PositiveInt = 800

    @property
    def has_pairs(self) -> bool:
        """Whether the items are pairs of sentences."""
        return True

    def list_splits(self) -> list[str]:
        """Return the names of the splits."""
        if self.origin == "stand_in" or self.pairs == "dev_test":
            return ["train", "valid", "test"]
        return ["train", "valid", "in_distribution", "test"]


def prepare(settings: Options, sources: dict[str, Path]) -> TableDataset:
    """Prepare the splits. Raises UserError for a missing or malformed source."""
    if settings.origin == "stand_in" or settings.pairs == "dev_test":
        with settings.open_sources(sources, stand_in.write_paws, settings.seed) as files:
            dev = settings.find_source(files, DEV)
            test = settings.find_source(files, TEST)
            splits, notes = split_dev_and_test(dev, test, settings)
        return build_limited_table(splits, LABELS, settings, notes, "reduced")
    swap = settings.find_source(sources, SWAP)
    swap_pairs = read_paws(swap, "train.tsv", (), "swap")
    final = settings.find_source(sources, FINAL)
    splits = {
        "train": read_paws(final, "train.tsv", (), "train"),
        "valid": read_paws(final, "dev.tsv", (), "valid"),
        "in_distribution": read_paws(final, "test.tsv", (), "in_distribution"),
        "test": [pair._replace(subset="swap") for pair in swap_pairs],
    }
    notes = ["train: PAWS-Wiki final; test: swap-only"]
    return build_limited_table(splits, LABELS, settings, notes)


def split_dev_and_test(
    dev: Path, test: Path, settings: Options
) -> tuple[dict[str, list[Sentence]], list[str]]:
    """Build train and valid from the pairs of one file and test from another.

    Returns the splits and notes. Raises UserError if no pair is left for train.
    """
    pairs = read_paws(dev, dev.name, COLUMNS, "dev")
    if settings.validation >= len(pairs):
        raise settings.make_error(
            f"key 'validation' is {settings.validation}; {dev} has {len(pairs)} pairs"
        )
    train, valid = split_off(pairs, settings.validation, settings.seed, "validation")
    test_pairs = []
    n_swapped = 0
    for pair in read_paws(test, test.name, COLUMNS, "test"):
        assert pair.second is not None, "all examples are pairs"
        if is_word_swap(pair.first, pair.second):
            test_pairs.append(pair._replace(subset="swap"))
            n_swapped += 1
        else:
            test_pairs.append(pair)
    return {"train": train, "valid": valid, "test": test_pairs}, [
        f"train and valid: PAWS-Wiki's dev part, {len(valid)} of {len(pairs)} pairs for valid; "
        "test: its test part",
        f"subset swap: the {n_swapped} pairs of test with equal words in another order; "
        "not upstream's swap-only set",
    ]


def is_word_swap(first: str, second: str) -> bool:
    """Return whether two sentences have the same words, equally often, in another order.

    Case is ignored.
    """
    first_words = first.lower().split()
    second_words = second.lower().split()
    return first_words != second_words and sorted(first_words) == sorted(second_words)


def read_paws(path: Path, file: str, columns: tuple[str, ...], split: str) -> list[Sentence]:
    """Read the pairs of a file, with a header line unless `columns` is given.

    split: the first part of the pairs' keys. Raises UserError with a wrong line.
    """
    pairs = []
    for line, row in read_tsv(path, file, COLUMNS, columns):
        label = parse_class(row["label"], ("0", "1"), f"{path}: {file}:{line}")
        pairs.append(Sentence(f"{split}-{row['id']}", row["sentence1"], row["sentence2"], label))
    return pairs
