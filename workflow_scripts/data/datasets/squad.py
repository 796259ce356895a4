"""SQuAD 1.1 (Rajpurkar et al. 2016), whose answers are spans of a paragraph.

Splits: `train`, `valid`, `test` (upstream's dev set); `add_sent` and `add_one_sent` (Jia and Liang
2017) add a misleading sentence to paragraphs.
"""

import json
from collections import Counter
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
    """A question with its paragraph and its first answer.

    The answer starts at character `start` of the paragraph; `answers` are all as a JSON list.
    """

    item: str
    question: str
    context: str
    start: float
    answer: str
    answers: str


class Options(DataOptions):
    """Options of the validation set.

    validation: minimum number of training questions in it, sampled as whole paragraphs.
    seed: of this sample.
    """

    validation: PositiveInt = 5000
    seed: int = 0

    def list_splits(self) -> list[str]:
        """Return the names of the splits."""
        return [*SOURCES, "valid"]


def prepare(settings: Options, sources: dict[str, Path]) -> TableDataset:
    """Prepare the splits. Raises UserError for a missing source."""
    questions = {}
    with settings.open_sources(sources, stand_in.write_squad, settings.seed) as files:
        for split, name in SOURCES.items():
            questions[split] = read_squad(settings.find_source(files, name))
    rows = questions.pop("train")
    held_out = sample_paragraphs(rows, settings)
    train = [row for row in rows if row.context not in held_out]
    valid = [row for row in rows if row.context in held_out]
    if not train:
        raise settings.make_error(
            f"key 'validation' is {settings.validation}; it leaves no question for training"
        )
    notes = [
        f"valid: {len(valid)} questions of training paragraphs, drawn with seed {settings.seed}"
    ]
    splits = {"train": train, "valid": valid, **questions}
    return TableDataset(collect_columns(splits, Question._fields), notes)


def sample_paragraphs(questions: list[Question], settings: Options) -> set[str]:
    """Sample paragraphs until they have as many questions as the validation set needs.

    Returns their texts.
    """
    sizes = Counter(question.context for question in questions)
    sampled: set[str] = set()
    n_questions = 0
    for context in shuffle_rows(list(sizes), settings.seed, "validation"):
        if n_questions >= settings.validation:
            break
        sampled.add(context)
        n_questions += sizes[context]
    return sampled


def read_squad(path: Path) -> list[Question]:
    """Read the questions of a file."""
    questions = []
    for article in json.loads(path.read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            for entry in paragraph["qas"]:
                texts = [answer["text"] for answer in entry["answers"]]
                question = Question(
                    item=entry["id"],
                    question=entry["question"].strip(),
                    context=paragraph["context"],
                    start=float(entry["answers"][0]["answer_start"]),
                    answer=texts[0],
                    answers=json.dumps(list(dict.fromkeys(texts)), ensure_ascii=False),
                )
                questions.append(question)
    return questions
