"""GLUE (Wang et al. 2019): the tasks of CAT's table 4 except STS-B, in the layouts of their public archives.

Splits: `train`, `valid`, `test`; MNLI also has `mismatched`, the dev set of genres that are not in
the training set.
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
    build_table,
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


DIGITS, ENTAILMENT = ("0", "1"), ("entailment", "not_entailment")
MNLI_LABELS = ("entailment", "neutral", "contradiction")
MNLI_FILES = {"train": "train.tsv", "test": "dev_matched.tsv", "mismatched": "dev_mismatched.tsv"}
MRPC_COLUMNS = ("#1 String", "#2 String", "Quality")
MRPC_IDS = ("#1 ID", "#2 ID")
MRPC_FILES = {split: f"msr_paraphrase_{split}.txt" for split in ("train", "test")}
COLA_LABELS, COLA_HEADER = ("unacceptable", "acceptable"), ("source", "label", "mark", "sentence")
QQP_COLUMNS = ("question1", "question2", "is_duplicate")
SST2_SOURCES, SST2_FILES = ("sst2/SST-2.zip", "sst2/{}"), {"train": "train.tsv", "dev": "dev.tsv"}
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
    """The task, and the number of training examples moved to the validation set, for all but MRPC, which has its own.

    Upstream's dev set is the test set, because the labels of its test set are not public.
    """

    task: Literal["cola", "mnli", "mrpc", "qnli", "qqp", "rte"]
    validation: PositiveInt = 1000


def prepare(settings: Options, sources: dict[str, Path]) -> TableDataset:
    """Prepare the splits. Raises UserError for a missing or malformed source."""
    layout = LAYOUTS[settings.task]
    found = {split: read_glue(settings, sources, settings.task, split) for split in layout.files}
    if settings.task == "mrpc":
        # Two ids per line.
        wanted = {
            text.replace("\t", "/")
            for _, text in read_numbered_lines(settings.find_source(sources, DEV_IDS))
        }
        train = [row for row in found["train"] if row.item not in wanted]
        valid = [row for row in found["train"] if row.item in wanted]
        notes = ["valid: the pairs of the training set that GLUE names as its dev set"]
    else:
        train, valid = split_off(found["train"], settings.validation, settings.seed, "validation")
        notes = [
            f"valid: {len(valid)} training examples, drawn with seed {settings.seed}; test: GLUE's dev set"
        ]
    return build_table(
        {**found, "train": train, "valid": valid}, list(layout.labels), settings, notes
    )


def read_glue(
    settings: SentenceOptions,
    sources: dict[str, Path],
    task: str,
    split: str,
    genre: str | None = None,
) -> list[Sentence]:
    """Read the examples of one file of a task, or, for MNLI, only those of `genre`.

    Raises UserError if malformed.
    """
    layout = LAYOUTS[task]
    file = layout.files[split]
    path = settings.find_source(sources, *(name.format(file) for name in layout.sources))
    *texts, label = layout.columns
    found = []
    # Upstream's file of QQP has broken lines.
    needed = (*layout.columns, *(MRPC_IDS if task == "mrpc" else ()))
    for line, row in read_tsv(path, file, needed, layout.header, skip_broken=task == "qqp"):
        if genre is None or row.get("genre") == genre:
            item = f"{row['#1 ID']}/{row['#2 ID']}" if task == "mrpc" else f"{split}-{line}"
            first, second = [row[name].strip() for name in texts] + [None] * (2 - len(texts))
            kind = parse_class(
                row[label], layout.written or layout.labels, f"{path}: {file}:{line}"
            )
            found.append(Sentence(item, first, second, kind))
    return found
