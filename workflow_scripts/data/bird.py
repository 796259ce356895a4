"""BiRD (Asaadi et al. 2019): how related two phrases are, a bigram and a bigram or a word; BiRD-ABBA (Yu and Ettinger
2020): its pairs of two words in both orders.

Options of `prepare`:

set: `all` or `abba`.
from: `upstream` reads upstream's file; `stand_in` makes a small one of the same form first.

The one split `test` has a score from 0 to 1 for each pair: nothing is trained on it. Control: `word_overlap`, the
share of the two phrases' words that both have.
"""

import tempfile
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from workflow_scripts.data.records import PreparedRecords
from workflow_scripts.data.sentences import Sentence, SentenceOptions, named_source, number, table, tsv_rows
from workflow_scripts.data.stand_ins import bird as stand_in
from workflow_scripts.errors import UserError
from workflow_scripts.schema import Strict, checked

WHERE = "options of workflow_scripts.data.bird"
SOURCES = {"all": "bird/BiRD.txt", "abba": "bird/BiRD-ABBA.txt"}
NEEDED = ("term1", "term2", "relatedness score")


class Options(Strict):
    """See the module's docstring."""

    origin: Literal["upstream", "stand_in"] = Field("upstream", alias="from")
    pairs: Literal["all", "abba"] = Field("all", alias="set")


def prepare(options: dict[str, Any], sources: dict[str, Path]) -> PreparedRecords:
    """The split test. Raises UserError for wrong options or a malformed file."""
    settings = checked(Options, options, WHERE)
    source = SOURCES[settings.pairs]
    if settings.origin == "stand_in":
        with tempfile.TemporaryDirectory() as folder:
            pairs = read(stand_in.write(Path(folder))[source])
        notes = ["made-up pairs in the format of BiRD"]
    else:
        pairs, notes = read(named_source(sources, [source], WHERE)), []
    controls = {"word_overlap": [overlap(pair.first.split(), pair.second.split()) for pair in pairs]}
    # Controls belong to every pair: there is no limit.
    whole = SentenceOptions.model_validate({"from": settings.origin})
    return table({"test": pairs}, None, whole, notes, controls=controls)


def overlap(first: Iterable[Hashable], second: Iterable[Hashable]) -> float:
    """|A & B| / |A | B| of two sets, 0 where both are empty."""
    one, other = set(first), set(second)
    return len(one & other) / len(one | other) if one | other else 0.0


def read(path: Path) -> list[Sentence]:
    """The pairs of a file. Raises UserError naming the line that is not one."""
    found = []
    for line, row in tsv_rows(path, path.name):
        if missing := [name for name in NEEDED if name not in row]:
            raise UserError(f"{path}: no column '{missing[0]}'; fetch the file again")
        score = number(row["relatedness score"], 0, 1, f"{path}:{line}")
        found.append(Sentence(f"{row['term1']}/{row['term2']}", row["term1"], row["term2"], score))
    return found
