"""COGS (Kim and Linzen 2020): English sentences to logical forms, with a test set of 21 kinds of generalisation.

Splits: `train`; `dev` and `in_distribution` (upstream's dev and test, from the training
distribution); `test` (upstream's gen, the paper's test set) and `valid`, sampled from it. `subset`
is the kind of generalisation.
"""

from pathlib import Path

from workflow_scripts.data.prepared import Seq2SeqDataset
from workflow_scripts.data.sources.archives import read_numbered_lines
from workflow_scripts.data.splits import Example, SplitOptions, make_splits
from workflow_scripts.data.stand_ins import cogs as stand_in

SPLITS = {
    "train": "train",
    "dev": "dev",
    "in_distribution": "test",
    "test": "gen",
}  # our name -> upstream's file
STRUCTURAL = ["cp_recursion", "obj_pp_to_subj_pp", "pp_recursion"]


class Options(SplitOptions):
    """Options; those of every sequence-to-sequence set."""


def prepare(settings: Options, sources: dict[str, Path]) -> Seq2SeqDataset:
    """Prepare the splits. Raises UserError for missing sources."""
    with settings.open_sources(sources, stand_in.write_cogs, settings.seed) as files:
        made = {
            split: read_cogs(settings.find_source(files, f"cogs/{file}.tsv"))
            for split, file in SPLITS.items()
        }
    train, test = made.pop("train"), made.pop("test")
    splits, notes = make_splits(train, test, made, settings)
    found = sorted({example.subset for example in splits["test"]})
    groups = {"lexical": [kind for kind in found if kind not in STRUCTURAL]}
    groups["structural"] = [kind for kind in found if kind in STRUCTURAL]
    return Seq2SeqDataset(splits, notes, "reduced" if settings.limit else "paper", groups)


def read_cogs(path: Path) -> list[Example]:
    """Read sentence, logical form and kind of each line, with repeated ones."""
    rows = (line.split("\t") for _, line in read_numbered_lines(path))
    return [Example(*(" ".join(cell.split()) for cell in cells)) for cells in rows]
