"""CFQ (Keysers et al. 2020): English questions to SPARQL queries, in the splits of its archive.

Of these, MCD1 to MCD3: `train`, `valid` (upstream's dev, from the test distribution) and `test`,
with compounds that training lacks.
"""

import json
import string
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from workflow_scripts.data.formats import sparql
from workflow_scripts.data.prepared import Seq2SeqDataset
from workflow_scripts.data.sources.archives import DAMAGED, iterate_archive, report_broken
from workflow_scripts.data.sources.task_sources import DataOptions
from workflow_scripts.data.splits import Example
from workflow_scripts.data.stand_ins import cfq as stand_in

ARCHIVE = "cfq/cfq.tar.gz"
# Our name -> upstream's key.
SPLITS = {"train": "trainIdxs", "valid": "devIdxs", "test": "testIdxs"}
SPACED = str.maketrans({mark: f" {mark} " for mark in string.punctuation})


class Options(DataOptions):
    """Options. Questions always get spaces around punctuation.

    preprocessing: of the queries. `official` (Keysers et al. 2020): `count(*)` becomes 4 tokens,
        `ns:` is removed, `m.` becomes `m_`. `grouped` (Zheng and Lapata 2022) then also merges
        triples with common parts into items and sorts the items; see `data.formats.sparql`.
    inverse: for grouped: first replaces ten predicates by their inverses. Upstream does this for
        MCD2 and MCD3.
    """

    split: Literal["mcd1", "mcd2", "mcd3"]
    preprocessing: Literal["grouped", "official"] = "grouped"
    inverse: bool = False
    seed: int = 0  # of the stand-in data

    def list_splits(self) -> list[str]:
        """Return the names of the splits."""
        return list(SPLITS)


def prepare(settings: Options, sources: dict[str, Path]) -> Seq2SeqDataset:
    """Prepare the splits. Raises UserError for a missing source."""
    if settings.inverse and settings.preprocessing == "official":
        raise settings.make_error(
            "key 'inverse' means nothing for preprocessing official; leave it out"
        )
    with settings.open_sources(sources, stand_in.write_cfq, settings.seed) as files:
        splits = read_cfq(settings.find_source(files, ARCHIVE), settings)
    notes = []
    if settings.preprocessing == "grouped":
        notes.append("queries: triples with common parts are one item, items are sorted")
    if settings.inverse:
        notes.append(f"queries: {len(sparql.INVERSE)} predicates are turned into their inverses")
    return Seq2SeqDataset(splits, notes)


def read_cfq(archive: Path, settings: Options) -> dict[str, list[Example]]:
    """Read the splits in one pass.

    Raises UserError for an archive that is broken, lacks a file or has another content.
    """
    import ijson

    with report_broken(archive, (ijson.JSONError, *DAMAGED)):
        return _read_splits(archive, settings)


def _read_splits(archive: Path, settings: Options) -> dict[str, list[Example]]:
    """Read the splits of an archive that is as upstream's."""
    import ijson

    pairs: list[Example] = []
    positions: dict[str, list[int]] = {}
    for name, content in iterate_archive(archive):
        path = PurePosixPath(name)
        if path.name == "dataset.json":
            # One by one, because upstream's list has gigabytes, mostly rule trees, which are
            # unused.
            for item in ijson.items(content, "item", use_float=True):
                pairs.append(make_pair(item, settings))
        elif path.parts[-2:] == ("splits", f"{settings.split}.json"):
            positions = json.load(content)
    splits = {}
    for split, key in SPLITS.items():
        splits[split] = [pairs[position] for position in positions[key]]
    return splits


def make_pair(item: dict[str, Any], settings: Options) -> Example:
    """Return the question and the query of an item of dataset.json as tokens."""
    target = sparql.tokenise_sparql(item["sparqlPatternModEntities"])
    if settings.preprocessing == "grouped":
        target = sparql.group_conditions(target, settings.inverse)
    return Example(split_punctuation(item["questionPatternModEntities"]), target)


def split_punctuation(question: str) -> str:
    """Separate every ASCII punctuation mark by spaces.

    So `Did M1's editor win?` becomes `Did M1 ' s editor win ?`.
    """
    return " ".join(question.translate(SPACED).split())
