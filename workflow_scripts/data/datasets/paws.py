"""PAWS (Zhang et al. 2019): pairs of sentences with nearly the same words, paraphrases or not.

Options of `prepare`, in addition to those of `datasets.sentences`:

set: `wiki`     trains on PAWS-Wiki's final set and tests on its swap-only set, where each pair differs by swapped
                words; all of it is the subset `swap`.
     `qqp`      trains on PAWS-QQP (`datasets.paws_qqp` builds it from Quora's questions) and tests like `wiki`.
     `dev_test` for use without the training and swap-only sets: trains on the final set's dev part and tests on its
                test part, where the subset `swap` contains the pairs with equal words in another order.
validation: for dev_test: number of pairs of the dev part used for validation instead of training.

Splits: `train`, `valid`, `test` and, except for `dev_test`, `in_distribution` (the final set's test part). For `qqp`,
upstream has one set for dev and test; its pairs go alternately to `valid` and `in_distribution`.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import parse_as
from workflow_scripts.data.datasets import paws_qqp
from workflow_scripts.data.datasets.sentences import (
    Sentence,
    SentenceOptions,
    build_table,
    parse_class,
    read_tsv,
    split_off,
)
from workflow_scripts.data.prepared import TableDataset
from workflow_scripts.data.sources.task_sources import find_source, open_sources
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
    """Prepare the splits. Raises UserError for wrong options or a missing or malformed source."""
    settings = parse_as(Options, options, WHERE)
    if settings.origin == "stand_in" or settings.pairs == "dev_test":
        with open_sources(settings.origin, sources, stand_in.write_paws, settings.seed) as files:
            splits, notes = split_dev_and_test(*(find_source(files, WHERE, name) for name in (DEV, TEST)), settings)
        return build_table(splits, LABELS, settings, notes, "reduced")
    swap = find_source(sources, WHERE, SWAP)
    test = [pair._replace(subset="swap") for pair in read_paws(swap, "train.tsv", None, "swap")]
    if settings.pairs == "wiki":
        final = find_source(sources, WHERE, FINAL)
        parts = {"train": "train.tsv", "valid": "dev.tsv", "in_distribution": "test.tsv"}
        splits = {split: read_paws(final, file, None, split) for split, file in parts.items()}
        return build_table(splits | {"test": test}, LABELS, settings, ["train: PAWS-Wiki final; test: swap-only"])
    index = find_source(sources, WHERE, paws_qqp.INDEX)
    questions = find_source(sources, WHERE, paws_qqp.QUESTIONS)
    made, notes = paws_qqp.rebuild_paws_qqp(index, questions, find_source(sources, WHERE, paws_qqp.PUNKT))
    splits = {"train": made["train"], "valid": made["dev_and_test"][::2], "in_distribution": made["dev_and_test"][1::2]}
    return build_table(splits | {"test": test}, LABELS, settings, [*notes, "test: swap-only pairs of PAWS-Wiki"])


def split_dev_and_test(dev: Path, test: Path, settings: Options) -> tuple[dict[str, list[Sentence]], list[str]]:
    """Build train and valid from the pairs of one file and test from another. Returns the splits and notes."""
    pairs = read_paws(dev, dev.name, COLUMNS, "dev")
    if settings.validation >= len(pairs):
        raise UserError(f"{WHERE}: key 'validation' is {settings.validation}; {dev} has {len(pairs)} pairs")
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


def read_paws(path: Path, file: str, columns: tuple[str, ...] | None, split: str) -> list[Sentence]:
    """Read the pairs of a file with columns id, sentence1, sentence2, label. Raises UserError with a wrong line."""
    return [
        Sentence(
            f"{split}-{row['id']}",
            row["sentence1"],
            row["sentence2"],
            parse_class(row["label"], ("0", "1"), f"{path}: {file}:{line}"),
        )
        for line, row in read_tsv(path, file, columns)
    ]
