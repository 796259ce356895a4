"""Stanford Sentiment Treebank (Socher et al. 2013): whole sentences with one of three labels.

The trees have five classes, equal ranges of the annotators' score: 0 and 1 are negative, 2 is
neutral, 3 and 4 are positive. CARMA cuts the continuous score at 0.4 and 0.6, which differs only
for scores of exactly 0.4 or 0.6.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from workflow_scripts.data.prepared import PromptItem, TableDataset, collect_columns
from workflow_scripts.data.sources.archives import read_numbered_lines
from workflow_scripts.data.sources.task_sources import DataOptions
from workflow_scripts.data.stand_ins import sst as stand_in

SOURCE = "sst/trainDevTestTrees_PTB.zip"
SPLITS = {
    "train": "train.txt",
    "valid": "dev.txt",
    "test": "test.txt",
}  # our name -> upstream's file
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


def prepare(settings: Options, sources: dict[str, Path]) -> TableDataset:
    """Prepare the splits. Raises UserError for a missing source."""
    rows = {
        split: [
            PromptItem(f"{split}-{line}", clean_sentence(text), LABELS[kind])
            for line, text, kind in found
        ]
        for split, found in read_sst(settings, sources).items()
    }
    notes = [
        "labels from the five classes of the trees: 0 and 1 negative, 2 neutral, 3 and 4 positive"
    ]
    return TableDataset(collect_columns(rows, PromptItem._fields), notes)


def read_sst(
    settings: DataOptions, sources: dict[str, Path]
) -> dict[str, list[tuple[int, str, int]]]:
    """Read the trees of each split: (line, sentence with spaces between its tokens, class from 0 to 4)."""
    with settings.open_sources(sources, stand_in.write_sst) as found:
        path = settings.find_source(found, SOURCE)
        return {split: list(read_trees(path, file)) for split, file in SPLITS.items()}


def read_trees(path: Path, file: str) -> Iterator[tuple[int, str, int]]:
    """Yield (line, sentence, class of the root) of bracketed trees, one per line."""
    for number, line in read_numbered_lines(path, file):
        words = LEAF.findall(line)
        for written, meant in ESCAPED.items():
            words = [word.replace(written, meant) for word in words]
        yield number, " ".join(words), int(line.strip()[1])


def clean_sentence(sentence: str) -> str:
    """Lower-case a sentence, join punctuation and clitics to their word, merge dots and remove the last one."""
    text = sentence.lower()
    for pattern, replacement in TIDYINGS.items():
        text = re.sub(pattern, replacement, text)
    return text.strip()
