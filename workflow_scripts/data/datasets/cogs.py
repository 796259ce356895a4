"""COGS (Kim and Linzen 2020): English sentences to logical forms.

Splits: `train`; `dev` and `in_distribution` (upstream's dev and test, from the training
distribution); `test` (upstream's gen, the paper's test set of 21 kinds of generalisation) and
`valid`, sampled from it. `subset` is the kind of generalisation.
"""

from pathlib import Path

from workflow_scripts.data.prepared import Seq2SeqDataset
from workflow_scripts.data.sources.archives import read_numbered_lines
from workflow_scripts.data.splits import Example, SplitOptions, make_splits
from workflow_scripts.data.stand_ins import cogs as stand_in

# Our name -> upstream's file.
SPLITS = {"train": "train", "dev": "dev", "in_distribution": "test", "test": "gen"}
STRUCTURAL = ["cp_recursion", "obj_pp_to_subj_pp", "pp_recursion"]


class Options(SplitOptions):
    """Options; those of every sequence-to-sequence set."""

    def list_splits(self) -> list[str]:
        """Return the names of the splits."""
        return ["train", "valid", "dev", "in_distribution", "test"]


def prepare(settings: Options, sources: dict[str, Path]) -> Seq2SeqDataset:
    """Prepare the splits. Raises UserError for missing sources."""
    examples = {}
    with settings.open_sources(sources, stand_in.write_cogs, settings.seed) as files:
        for split, file in SPLITS.items():
            examples[split] = read_cogs(settings.find_source(files, f"cogs/{file}.tsv"))
    train = examples.pop("train")
    test = examples.pop("test")
    splits, notes = make_splits(train, test, examples, settings)
    kinds = sorted({example.subset for example in splits["test"]})
    groups = {
        "lexical": [kind for kind in kinds if kind not in STRUCTURAL],
        "structural": [kind for kind in kinds if kind in STRUCTURAL],
    }
    protocol = "reduced" if settings.limit else "paper"
    return Seq2SeqDataset(splits, notes, protocol, groups)


def read_cogs(path: Path) -> list[Example]:
    """Read sentence, logical form and kind of each line, with repeated ones."""
    examples = []
    for _number, line in read_numbered_lines(path):
        cells = [" ".join(cell.split()) for cell in line.split("\t")]
        examples.append(Example(*cells))
    return examples
