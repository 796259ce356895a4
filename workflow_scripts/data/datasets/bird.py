"""BiRD (Asaadi et al. 2019): the relatedness of a bigram and another bigram or word, from 0 to 1.

BiRD-ABBA (Yu and Ettinger 2020) is the part with pairs of a bigram and the same two words in
reverse order. The only split is `test`; there is no training set.
"""

from pathlib import Path
from typing import Literal

from pydantic import Field

from workflow_scripts.data.datasets.sentences import (
    Sentence,
    SentenceOptions,
    build_limited_table,
    parse_number,
    read_tsv,
)
from workflow_scripts.data.prepared import TableDataset
from workflow_scripts.data.stand_ins import bird as stand_in

SOURCES = {"all": "bird/BiRD.txt", "abba": "bird/BiRD-ABBA.txt"}


class Options(SentenceOptions):
    """All pairs or those of BiRD-ABBA."""

    pairs: Literal["all", "abba"] = Field("all", alias="set")

    @property
    def has_pairs(self) -> bool:
        """Whether the items are pairs of sentences."""
        return True

    def list_splits(self) -> list[str]:
        """Return the names of the splits."""
        return ["test"]


def prepare(settings: Options, sources: dict[str, Path]) -> TableDataset:
    """Prepare the split. Raises UserError for a missing or malformed source."""
    pairs = []
    with settings.open_sources(sources, stand_in.write_bird) as files:
        path = settings.find_source(files, SOURCES[settings.pairs])
        for line, row in read_tsv(path, path.name, ("term1", "term2", "relatedness score")):
            score = parse_number(row["relatedness score"], 0, 1, f"{path}:{line}")
            pairs.append(
                Sentence(f"{row['term1']}/{row['term2']}", row["term1"], row["term2"], score)
            )
    return build_limited_table({"test": pairs}, None, settings, [])
