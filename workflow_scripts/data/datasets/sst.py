"""Stanford Sentiment Treebank (Socher et al. 2013): whole sentences with one of three labels.

The trees have five classes, equal ranges of the annotators' score: 0 and 1 are negative, 2 is
neutral, 3 and 4 are positive. CARMA cuts the continuous score at 0.4 and 0.6, which differs only
for scores of exactly 0.4 or 0.6.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from workflow_scripts.data.prepared import PromptItem, TableDataset, collect_columns
from workflow_scripts.data.sources.archives import read_numbered_lines
from workflow_scripts.data.sources.task_sources import DataOptions
from workflow_scripts.data.stand_ins import sst as stand_in

SOURCE = "sst/trainDevTestTrees_PTB.zip"
# Our name -> upstream's file.
SPLITS = {"train": "train.txt", "valid": "dev.txt", "test": "test.txt"}
LABELS = ["negative", "negative", "neutral", "positive", "positive"]  # by upstream's class
LEAF = re.compile(r"\([0-4] ([^ ()]+)\)")  # a word can contain a no-break space
# The treebank's escapes of characters that are part of its format.
ESCAPED = {"-LRB-": "(", "-RRB-": ")", r"\/": "/", r"\*": "*"}
TIDYINGS = {  # pattern -> replacement
    "`": "'",
    "--": "-",
    r"(?:\. *){2,}": ". ",  # several dots become one
    r" +([?.!,\"])": r"\1",
    r"\" +": '"',
    r" +('(?:s|t|re|ve|ll|d|m)\b|n't\b)": r"\1",
    r"\. *$": "",
    r"\s+": " ",
}


class Options(DataOptions):
    """Options of every data set."""

    def list_splits(self) -> list[str]:
        """Return the names of the splits."""
        return list(SPLITS)


class Tree(NamedTuple):
    """What is read of a tree: its sentence, with spaces between tokens, and its root's class.

    Lines are numbered from 1, classes from 0 to 4.
    """

    line: int
    sentence: str
    kind: int


def prepare(settings: Options, sources: dict[str, Path]) -> TableDataset:
    """Prepare the splits. Raises UserError for a missing source."""
    rows: dict[str, list[PromptItem]] = {}
    for split, trees in read_sst(settings, sources).items():
        rows[split] = []
        for tree in trees:
            text = clean_sentence(tree.sentence)
            rows[split].append(PromptItem(f"{split}-{tree.line}", text, LABELS[tree.kind]))
    notes = [
        "labels from the five classes of the trees: 0 and 1 negative, 2 neutral, 3 and 4 positive"
    ]
    return TableDataset(collect_columns(rows, PromptItem._fields), notes)


def read_sst(settings: DataOptions, sources: dict[str, Path]) -> dict[str, list[Tree]]:
    """Read the trees of each split."""
    with settings.open_sources(sources, stand_in.write_sst) as files:
        path = settings.find_source(files, SOURCE)
        return {split: list(read_trees(path, file)) for split, file in SPLITS.items()}


def read_trees(path: Path, file: str) -> Iterator[Tree]:
    """Yield bracketed trees, one per line."""
    for number, line in read_numbered_lines(path, file):
        words = LEAF.findall(line)
        for escape, meaning in ESCAPED.items():
            words = [word.replace(escape, meaning) for word in words]
        yield Tree(number, " ".join(words), int(line.strip()[1]))


def clean_sentence(sentence: str) -> str:
    """Lower-case a sentence and join punctuation and clitics to their word.

    Several dots become one, and the last one is removed.
    """
    text = sentence.lower()
    for pattern, replacement in TIDYINGS.items():
        text = re.sub(pattern, replacement, text)
    return text.strip()
