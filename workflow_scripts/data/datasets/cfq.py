"""CFQ (Keysers et al. 2020): English questions to SPARQL queries, in the splits MCD1 to MCD3 of its archive.

Splits: `train`, `valid` (upstream's dev, from the test distribution) and `test`, with compounds that training lacks.
"""

import json
import string
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.formats import sparql
from workflow_scripts.data.prepared import Seq2SeqDataset
from workflow_scripts.data.sources.archives import iterate_archive, report_broken
from workflow_scripts.data.sources.task_sources import DataOptions
from workflow_scripts.data.splits import Example
from workflow_scripts.data.stand_ins import cfq as stand_in

ARCHIVE = "cfq/cfq.tar.gz"
SPLITS = {"train": "trainIdxs", "valid": "devIdxs", "test": "testIdxs"}  # our name -> upstream's key
MAX_DEPTH = 1000  # open brackets of dataset.json, and bytes that are counted at once
SPACED = str.maketrans({mark: f" {mark} " for mark in string.punctuation})


class Options(DataOptions):
    """Options. Questions always get spaces around punctuation.

    preprocessing: of the queries. `official` (Keysers et al. 2020): `count(*)` becomes 4 tokens, `ns:` is removed, `m.`
        becomes `m_`. `grouped` (Zheng and Lapata 2022) then also merges triples with common parts into items and sorts
        the items; see `data.formats.sparql`.
    inverse: for grouped: first replaces ten predicates by their inverses. Upstream does this for MCD2 and MCD3.
    """

    split: Literal["mcd1", "mcd2", "mcd3"]
    preprocessing: Literal["grouped", "official"] = "grouped"
    inverse: bool = False
    seed: int = 0  # of the stand-in data


def prepare(settings: Options, sources: dict[str, Path]) -> Seq2SeqDataset:
    """Prepare the splits. Raises UserError for a missing source or malformed items."""
    if settings.inverse and settings.preprocessing == "official":
        raise settings.make_error("key 'inverse' means nothing for preprocessing official; leave it out")
    with settings.open_sources(sources, stand_in.write_cfq, settings.seed) as files:
        splits = read_cfq(settings.find_source(files, ARCHIVE), settings)
    notes = []
    if settings.preprocessing == "grouped":
        notes.append("queries: triples with common parts are one item, items are sorted")
    if settings.inverse:
        notes.append(f"queries: {len(sparql.INVERSE)} predicates are turned into their inverses")
    return Seq2SeqDataset(splits, notes)


def read_cfq(archive: Path, settings: Options) -> dict[str, list[Example]]:
    """Read the splits in one pass. Raises UserError with the file in the archive and the number of a wrong item."""
    import ijson

    pairs = indices = None
    with report_broken(archive):
        for name, content in iterate_archive(archive):
            path, where = PurePosixPath(name), f"{archive}: {name}"
            if path.name == "dataset.json" and pairs is None:
                pairs = []
                try:
                    # One by one, because upstream's list has gigabytes, mostly rule trees, which are unused.
                    for item in ijson.items(ShallowStream(content, where), "item", use_float=True):
                        pairs.append(_pair(item, settings, f"{where}, item {len(pairs)}"))
                except ijson.JSONError as error:
                    reason = f"not JSON after {len(pairs)} items ({' '.join(str(error).split())[:80]})"
                    raise UserError(f"{where}: {reason}; fetch the archive again") from error
            elif path.parts[-2:] == ("splits", f"{settings.split}.json"):
                indices = _indices(content.read(), where)
    for found, name in ((pairs, "dataset.json"), (indices, f"splits/{settings.split}.json")):
        if found is None:
            raise UserError(f"{archive}: has no {name}; fetch it again")
    for key in SPLITS.values():
        if beyond := [i for i in indices[key] if i >= len(pairs)]:
            what = f"{key} of splits/{settings.split}.json names item {beyond[0]}"
            raise UserError(f"{archive}: {what}, but dataset.json has {len(pairs)}; fetch it again")
    return {split: [pairs[i] for i in indices[key]] for split, key in SPLITS.items()}


class ShallowStream:
    """A JSON file whose brackets may not be deeply nested: ijson's memory grows with the square of the depth."""

    def __init__(self, stream: IO[bytes], where: str) -> None:
        self.stream, self.where, self.depth = stream, where, 0

    def read(self, size: int) -> bytes:
        """Read up to `size` bytes. Raises UserError if more than MAX_DEPTH brackets are open after them."""
        piece = self.stream.read(min(size, MAX_DEPTH))
        self.depth += sum(map(piece.count, (b"[", b"{"))) - sum(map(piece.count, (b"]", b"}")))
        if self.depth > MAX_DEPTH:
            raise UserError(f"{self.where}: nested more than {MAX_DEPTH} levels deep; fetch the archive again")
        return piece


def _pair(item: Any, settings: Options, where: str) -> Example:
    texts = []
    for key in ("questionPatternModEntities", "sparqlPatternModEntities"):
        text = item.get(key) if isinstance(item, dict) else None
        if not isinstance(text, str) or not text.strip():
            raise UserError(f"{where}: no text under '{key}'; fetch the archive again")
        texts.append(text)
    target = sparql.tokenise_sparql(texts[1])
    if settings.preprocessing == "grouped":
        try:
            target = sparql.group_conditions(target, settings.inverse)
        except ValueError as error:
            raise UserError(f"{where}: {error}; fetch the archive again") from error
    return Example(split_punctuation(texts[0]), target)


def split_punctuation(question: str) -> str:
    """Separate every ASCII punctuation mark by spaces: `Did M1's editor win?` -> `Did M1 ' s editor win ?`."""
    return " ".join(question.translate(SPACED).split())


def _indices(content: bytes, where: str) -> dict[str, list[int]]:
    """Parse a split file: trainIdxs, devIdxs and testIdxs. Raises UserError if it is malformed."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: not JSON ({error}); fetch the archive again") from error
    for key in SPLITS.values():
        numbers = found.get(key) if isinstance(found, dict) else None
        if not (isinstance(numbers, list) and all(type(n) is int and n >= 0 for n in numbers)):
            raise UserError(f"{where}: '{key}' is not a list of item numbers; fetch the archive again")
    return found
