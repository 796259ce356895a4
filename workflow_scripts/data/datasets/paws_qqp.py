"""PAWS-QQP (Zhang et al. 2019), rebuilt from Quora's questions with upstream's index of words.

The index files have the columns id, qid1, sentence1, qid2, sentence2, label. A sentence is a list of words joined by
`/`: each the position of a word in question `qid`, or several `(qid, position)` joined by `:`, whose words are written
without a space. Words come from NLTK's tokenizer, in upstream version 3.2.5. Pairs with words that do not exist with
the current version are dropped and counted.
"""

import csv
import re
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.datasets.sentences import Sentence, parse_class, read_tsv
from workflow_scripts.data.formats.punkt import load_sentence_splitter
from workflow_scripts.data.sources.archives import read_lines

INDEX, QUESTIONS = "paws/paws_qqp.tar.gz", "paws/quora_duplicate_questions.tsv"
PUNKT = "nltk/punkt_tab_english.tar.gz"
COLUMNS = ("id", "qid1", "sentence1", "qid2", "sentence2", "label")
PART = re.compile(r"\((\d+), ?(\d+)\)")


def rebuild_paws_qqp(index: Path, questions: Path, punkt: Path) -> tuple[dict[str, list[Sentence]], list[str]]:
    """Rebuild `train` and `dev_and_test`. Returns (pairs, notes). Raises UserError for a missing or malformed file."""
    files = {split: list(read_tsv(index, f"{split}.tsv")) for split in ("train", "dev_and_test")}
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
    if missing := [name for name in COLUMNS if name not in row]:
        raise UserError(f"{index}: no column '{missing[0]}'; fetch the archive again")
    parts = [part for n in (1, 2) for word in row[f"sentence{n}"].split("/") for part in word.split(":")]
    if not all(part.isdecimal() or PART.fullmatch(part) for part in parts) or not (
        row["qid1"].isdecimal() and row["qid2"].isdecimal()
    ):
        raise UserError(f"{index}: line {line} is not a pair of lists of words; fetch the archive again")
    return {int(row["qid1"]), int(row["qid2"])} | {int(PART.fullmatch(p)[1]) for p in parts if not p.isdecimal()}


def read_question_words(path: Path, wanted: set[int], punkt: Path) -> dict[int, list[str]]:
    """Read the words of the wanted questions, as NLTK's word_tokenize splits them: id -> words.

    Quora's file is tab-separated with quotes. `punkt` is the archive of the sentence splitter.
    """
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
