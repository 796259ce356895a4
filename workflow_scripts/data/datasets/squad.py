"""SQuAD 1.1 (Rajpurkar et al. 2016), whose answers are spans of a paragraph.

Splits: `train`, `valid`, `test` (upstream's dev set); `add_sent` and `add_one_sent` (Jia and Liang
2017) add a misleading sentence to paragraphs.
"""

import json
from collections import Counter
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from pydantic import PositiveInt

from workflow_scripts.data.datasets.sentences import shuffle_rows
from workflow_scripts.data.prepared import TableDataset, collect_columns
from workflow_scripts.data.sources.task_sources import DataOptions
from workflow_scripts.data.stand_ins import squad as stand_in

SOURCES = {
    "train": "squad/train-v1.1.json",
    "test": "squad/dev-v1.1.json",
    "add_sent": "squad/AddSent.json",
    "add_one_sent": "squad/AddOneSent.json",
}


class Question(NamedTuple):
    """A question with its paragraph and its first answer, which starts at character `start` of the paragraph."""

    item: str
    question: str
    context: str
    start: float
    answer: str
    answers: str


class Options(DataOptions):
    """Options of the validation set."""

    validation: PositiveInt = (
        5000  # minimum number of training questions, sampled as whole paragraphs
    )
    seed: int = 0  # of this sample


def prepare(settings: Options, sources: dict[str, Path]) -> TableDataset:
    """Prepare the splits. Raises UserError for a missing source."""
    with settings.open_sources(sources, stand_in.write_squad, settings.seed) as files:
        found = {
            split: read_squad(settings.find_source(files, name)) for split, name in SOURCES.items()
        }
    rows = found.pop("train")
    size = Counter(row.context for row in rows)
    order = shuffle_rows(list(size), settings.seed, "validation")
    before = accumulate((size[context] for context in order), initial=0)
    chosen = {
        context for context, kept in zip(order, before, strict=False) if kept < settings.validation
    }
    train = [row for row in rows if row.context not in chosen]
    valid = [row for row in rows if row.context in chosen]
    if not train:
        raise settings.make_error(
            f"key 'validation' is {settings.validation}; it leaves no question for training"
        )
    notes = [
        f"valid: {len(valid)} questions of training paragraphs, drawn with seed {settings.seed}"
    ]
    tables = collect_columns({"train": train, "valid": valid} | found, Question._fields)
    return TableDataset(tables, notes)


def read_squad(path: Path) -> list[Question]:
    """Read the questions of a file."""
    found = []
    for article in json.loads(path.read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            context = paragraph["context"]
            for question in paragraph["qas"]:
                texts = [answer["text"] for answer in question["answers"]]
                start = float(question["answers"][0]["answer_start"])
                answers = json.dumps(list(dict.fromkeys(texts)), ensure_ascii=False)
                found.append(
                    Question(
                        question["id"],
                        question["question"].strip(),
                        context,
                        start,
                        texts[0],
                        answers,
                    )
                )
    return found
