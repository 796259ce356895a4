"""GLUE (Wang et al. 2019): the tasks of CAT's table 4 except STS-B.

They are read in the layouts of their public archives. Splits: `train`, `valid`, `test`; MNLI also
has `mismatched`, the dev set of genres that are not in the training set.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import PositiveInt

from workflow_scripts.data.datasets.sentences import (
    Sentence,
    SentenceOptions,
    UpstreamOptions,
    build_limited_table,
    parse_class,
    read_tsv,
    split_off,
)
from workflow_scripts.data.prepared import TableDataset
from workflow_scripts.data.sources.archives import read_numbered_lines

DEV_IDS = "glue/mrpc_dev_ids.tsv"


@dataclass(frozen=True)
class Layout:
    """Location and columns of a task's examples."""

    sources: Sequence[str]  # any of these has the files; `{}` is a file's name
    columns: Sequence[str]  # one or two texts, then the label
    labels: Sequence[str]
    written: Sequence[str] = ()  # labels as written in the files, if they differ from `labels`
    header: Sequence[str] = ()  # columns of files without a header line
    files: dict[str, str] = field(default_factory=lambda: {"train": "train.tsv", "test": "dev.tsv"})


DIGITS = ("0", "1")
ENTAILMENT = ("entailment", "not_entailment")
MNLI_LABELS = ("entailment", "neutral", "contradiction")
MNLI_FILES = {"train": "train.tsv", "test": "dev_matched.tsv", "mismatched": "dev_mismatched.tsv"}
MRPC_COLUMNS = ("#1 String", "#2 String", "Quality")
MRPC_IDS = ("#1 ID", "#2 ID")
MRPC_FILES = {split: f"msr_paraphrase_{split}.txt" for split in ("train", "test")}
COLA_LABELS = ("unacceptable", "acceptable")
COLA_HEADER = ("source", "label", "mark", "sentence")
QQP_COLUMNS = ("question1", "question2", "is_duplicate")
SST2_SOURCES = ("sst2/SST-2.zip", "sst2/{}")
SST2_FILES = {"train": "train.tsv", "dev": "dev.tsv"}
LAYOUTS = {
    "cola": Layout(["glue/CoLA.zip"], ("sentence", "label"), COLA_LABELS, DIGITS, COLA_HEADER),
    "mnli": Layout(
        ["glue/MNLI.zip"], ("sentence1", "sentence2", "gold_label"), MNLI_LABELS, files=MNLI_FILES
    ),
    "mrpc": Layout(
        ["glue/{}"], MRPC_COLUMNS, ("different", "paraphrase"), DIGITS, files=MRPC_FILES
    ),
    "qnli": Layout(["glue/QNLIv2.zip"], ("question", "sentence", "label"), ENTAILMENT),
    "qqp": Layout(["glue/QQP-clean.zip"], QQP_COLUMNS, ("different", "duplicate"), DIGITS),
    "rte": Layout(["glue/RTE.zip"], ("sentence1", "sentence2", "label"), ENTAILMENT),
    "sst2": Layout(
        SST2_SOURCES, ("sentence", "label"), ("negative", "positive"), DIGITS, files=SST2_FILES
    ),
}


class Options(UpstreamOptions):
    """The task, and the number of training examples moved to the validation set.

    The number is not for MRPC, which has its own validation set. Upstream's dev set is the test
    set, because the labels of its test set are not public.
    """

    task: Literal["cola", "mnli", "mrpc", "qnli", "qqp", "rte"]
    validation: PositiveInt = 1000

    @property
    def has_pairs(self) -> bool:
        """Whether the items are pairs of sentences."""
        return len(LAYOUTS[self.task].columns) == 3

    def list_splits(self) -> list[str]:
        """Return the names of the splits."""
        return [*LAYOUTS[self.task].files, "valid"]


def prepare(settings: Options, sources: dict[str, Path]) -> TableDataset:
    """Prepare the splits. Raises UserError for a missing or malformed source."""
    layout = LAYOUTS[settings.task]
    splits = {split: read_glue(settings, sources, settings.task, split) for split in layout.files}
    examples = splits["train"]
    if settings.task == "mrpc":
        dev_items = read_dev_items(settings.find_source(sources, DEV_IDS))
        train = [row for row in examples if row.item not in dev_items]
        valid = [row for row in examples if row.item in dev_items]
        note = "valid: the pairs of the training set that GLUE names as its dev set"
    else:
        train, valid = split_off(examples, settings.validation, settings.seed, "validation")
        note = (
            f"valid: {len(valid)} training examples, drawn with seed {settings.seed}; "
            "test: GLUE's dev set"
        )
    splits |= {"train": train, "valid": valid}
    return build_limited_table(splits, list(layout.labels), settings, [note])


def read_dev_items(path: Path) -> set[str]:
    """Read MRPC's dev set: lines of two ids, as in the items of `read_glue`."""
    return {line.replace("\t", "/") for _number, line in read_numbered_lines(path)}


def read_glue(
    settings: SentenceOptions,
    sources: dict[str, Path],
    task: str,
    split: str,
    genre: str | None = None,
) -> list[Sentence]:
    """Read the examples of one file of a task, or, for MNLI, only those of `genre`.

    split: a key of the layout's files. The key of an example is the split and its line, or for MRPC
    its two ids. Raises UserError if the file is missing or malformed.
    """
    layout = LAYOUTS[task]
    file = layout.files[split]
    path = settings.find_source(sources, *(name.format(file) for name in layout.sources))
    *text_columns, label_column = layout.columns
    labels = layout.written or layout.labels
    needed = list(layout.columns)
    if task == "mrpc":
        needed += MRPC_IDS
    examples = []
    # Upstream's file of QQP has broken lines.
    for line, row in read_tsv(path, file, needed, layout.header, skip_broken=task == "qqp"):
        if genre is not None and row.get("genre") != genre:
            continue
        item = f"{split}-{line}"
        if task == "mrpc":
            item = "/".join(row[name] for name in MRPC_IDS)
        first, *others = [row[name].strip() for name in text_columns]
        second = others[0] if others else None
        label = parse_class(row[label_column], labels, f"{path}: {file}:{line}")
        examples.append(Sentence(item, first, second, label))
    return examples
