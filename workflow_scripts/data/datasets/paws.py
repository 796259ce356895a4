"""PAWS (Zhang et al. 2019): pairs of sentences with nearly the same words, paraphrases or not.

PAWS-QQP is rebuilt from Quora's questions with upstream's index of words. A sentence of the index is a list of words
joined by `/`: each the position of a word in question `qid`, or several `(qid, position)` joined by `:`, whose words
are written without a space. Words come from NLTK's tokenizer, in upstream version 3.2.5. Pairs with words that do not
exist with the current version are dropped and counted. Its pairs for dev and test go to `valid` and `in_distribution`
in turns.
"""

import csv
import re
from pathlib import Path
from typing import Literal

from pydantic import Field, PositiveInt

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.datasets.sentences import (
    Sentence,
    SentenceOptions,
    build_table,
    parse_class,
    read_tsv,
    split_off,
)
from workflow_scripts.data.formats.punkt import SOURCE as PUNKT
from workflow_scripts.data.formats.punkt import load_sentence_splitter
from workflow_scripts.data.prepared import TableDataset
from workflow_scripts.data.sources.archives import read_lines
from workflow_scripts.data.stand_ins import paws as stand_in

FINAL, SWAP = "paws/paws_wiki_labeled_final.tar.gz", "paws/paws_wiki_labeled_swap.tar.gz"
DEV, TEST = "paws/paws_wiki_final_dev.noheader.tsv", "paws/paws_wiki_final_test.noheader.tsv"
INDEX, QUESTIONS = "paws/paws_qqp.tar.gz", "paws/quora_duplicate_questions.tsv"
COLUMNS = ("id", "sentence1", "sentence2", "label")
PART = re.compile(r"\((\d+), ?(\d+)\)")
LABELS = ["different", "paraphrase"]


class Options(SentenceOptions):
    """The set, and for `dev_test` the number of pairs of the dev part used for validation instead of training.

    `wiki` trains on PAWS-Wiki's final set, `qqp` on PAWS-QQP; both test on the swap-only set of PAWS-Wiki, where each
    pair differs by swapped words (subset `swap`). `dev_test`, for use without these sets, trains on the final set's dev
    part and tests on its test part, where the subset `swap` contains the pairs with equal words in another order.
    """

    pairs: Literal["wiki", "qqp", "dev_test"] = Field("wiki", alias="set")
    validation: PositiveInt = 800


def prepare(settings: Options, sources: dict[str, Path]) -> TableDataset:
    """Prepare the splits. Raises UserError for a missing or malformed source."""
    if settings.origin == "stand_in" or settings.pairs == "dev_test":
        with settings.open_sources(sources, stand_in.write_paws, settings.seed) as files:
            splits, notes = split_dev_and_test(*(settings.find_source(files, name) for name in (DEV, TEST)), settings)
        return build_table(splits, LABELS, settings, notes, "reduced")
    swap = settings.find_source(sources, SWAP)
    test = [pair._replace(subset="swap") for pair in read_paws(swap, "train.tsv", (), "swap")]
    if settings.pairs == "wiki":
        final = settings.find_source(sources, FINAL)
        parts = {"train": "train.tsv", "valid": "dev.tsv", "in_distribution": "test.tsv"}
        splits = {split: read_paws(final, file, (), split) for split, file in parts.items()}
        return build_table(splits | {"test": test}, LABELS, settings, ["train: PAWS-Wiki final; test: swap-only"])
    made, notes = rebuild_paws_qqp(*(settings.find_source(sources, name) for name in (INDEX, QUESTIONS, PUNKT)))
    splits = {"train": made["train"], "valid": made["dev_and_test"][::2], "in_distribution": made["dev_and_test"][1::2]}
    return build_table(splits | {"test": test}, LABELS, settings, [*notes, "test: swap-only pairs of PAWS-Wiki"])


def split_dev_and_test(dev: Path, test: Path, settings: Options) -> tuple[dict[str, list[Sentence]], list[str]]:
    """Build train and valid from the pairs of one file and test from another. Returns the splits and notes."""
    pairs = read_paws(dev, dev.name, COLUMNS, "dev")
    if settings.validation >= len(pairs):
        raise settings.make_error(f"key 'validation' is {settings.validation}; {dev} has {len(pairs)} pairs")
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
    """Read the pairs of a file, with a header line unless `columns` is given. Raises UserError with a wrong line."""
    found = []
    for line, row in read_tsv(path, file, COLUMNS, columns):
        label = parse_class(row["label"], ("0", "1"), f"{path}: {file}:{line}")
        found.append(Sentence(f"{split}-{row['id']}", row["sentence1"], row["sentence2"], label))
    return found


def rebuild_paws_qqp(index: Path, questions: Path, punkt: Path) -> tuple[dict[str, list[Sentence]], list[str]]:
    """Rebuild `train` and `dev_and_test`. Returns (pairs, notes). Raises UserError for a missing or malformed file."""
    files = {
        split: list(read_tsv(index, f"{split}.tsv", (*COLUMNS, "qid1", "qid2"))) for split in ("train", "dev_and_test")
    }
    wanted = {qid for rows in files.values() for line, row in rows for qid in collect_question_ids(row, index, line)}
    words = read_question_words(questions, wanted, punkt)
    made: dict[str, list[Sentence]] = {}
    notes = []
    for split, rows in files.items():
        made[split] = []
        for line, row in rows:
            first, second = (build_sentence(row[f"sentence{n}"], int(row[f"qid{n}"]), words) for n in (1, 2))
            if first and second:
                label = parse_class(row["label"], ("0", "1"), f"{index}: {split}.tsv:{line}")
                made[split].append(Sentence(f"{split}-{row['id']}", first, second, label))
        lost = len(rows) - len(made[split])
        notes.append(f"{split}: {lost} of {len(rows)} pairs of PAWS-QQP cannot be made from these questions")
    return made, notes


def collect_question_ids(row: dict[str, str], index: Path, line: int) -> set[int]:
    """Return the ids of the questions that a pair takes words from. Raises UserError for a malformed line."""
    parts = [part for n in (1, 2) for word in row[f"sentence{n}"].split("/") for part in word.split(":")]
    if not all(part.isdecimal() or PART.fullmatch(part) for part in parts) or not (
        row["qid1"].isdecimal() and row["qid2"].isdecimal()
    ):
        raise UserError(f"{index}: line {line} is not a pair of lists of words; fetch the archive again")
    return {int(row["qid1"]), int(row["qid2"])} | {int(PART.fullmatch(p)[1]) for p in parts if not p.isdecimal()}


def read_question_words(path: Path, wanted: set[int], punkt: Path) -> dict[int, list[str]]:
    """Read the words of the wanted questions, as NLTK's word_tokenize splits them: id -> words."""
    from nltk.tokenize import NLTKWordTokenizer

    splitter, tokenizer = load_sentence_splitter(punkt), NLTKWordTokenizer()
    found: dict[int, list[str]] = {}
    reader = csv.DictReader((f"{line}\n" for _, line in read_lines(path, path.name)), delimiter="\t")
    needed = {"qid1", "qid2", "question1", "question2"}
    try:
        if not needed <= set(reader.fieldnames or ()):
            raise UserError(f"{path}: its columns are not those of Quora's question pairs; get the file again")
        for row in reader:
            for n in (1, 2):
                qid, text = row[f"qid{n}"] or "", row[f"question{n}"]
                if qid.isdecimal() and int(qid) in wanted and int(qid) not in found:
                    found[int(qid)] = [word for part in splitter.tokenize(text) for word in tokenizer.tokenize(part)]
    except csv.Error as error:  # after an unpaired quote, the rest of the file is one field
        raise UserError(f"{path}:{reader.line_num}: {error}; get the file again") from error
    return found


def build_sentence(listed: str, qid: int, words: dict[int, list[str]]) -> str:
    """Build a sentence from an index entry, with words joined by spaces; empty if a word does not exist."""
    made = []
    for word in listed.split("/"):
        places = [PART.fullmatch(part) for part in word.split(":")]
        parts = [(int(p[1]), int(p[2])) if p else (qid, int(word)) for p in places]
        if not all(question in words and at < len(words[question]) for question, at in parts):
            return ""
        made.append("".join(words[question][at] for question, at in parts))
    return " ".join(made)
