"""BiRD (Asaadi et al. 2019): the relatedness of a bigram and another bigram or word, from 0 to 1.

BiRD-ABBA (Yu and Ettinger 2020) is the part with pairs of a bigram and the same two words in reverse order.
The only split is `test`; there is no training set.
"""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from workflow_scripts.common.validation import parse_as
from workflow_scripts.data.datasets.sentences import Sentence, SentenceOptions, build_table, parse_number, read_tsv
from workflow_scripts.data.prepared import TableDataset
from workflow_scripts.data.sources.task_sources import find_source, open_sources
from workflow_scripts.data.stand_ins import bird as stand_in

WHERE = "options of workflow_scripts.data.datasets.bird"
SOURCES = {"all": "bird/BiRD.txt", "abba": "bird/BiRD-ABBA.txt"}


class Options(SentenceOptions):
    """All pairs or those of BiRD-ABBA."""

    pairs: Literal["all", "abba"] = Field("all", alias="set")


def prepare(options: dict[str, Any], sources: dict[str, Path]) -> TableDataset:
    """Prepare the split. Raises UserError for wrong options or a missing or malformed source."""
    settings = parse_as(Options, options, WHERE)
    pairs = []
    with open_sources(settings.origin, sources, stand_in.write_bird) as files:
        path = find_source(files, WHERE, SOURCES[settings.pairs])
        for line, row in read_tsv(path, path.name, ("term1", "term2", "relatedness score")):
            score = parse_number(row["relatedness score"], 0, 1, f"{path}:{line}")
            pairs.append(Sentence(f"{row['term1']}/{row['term2']}", row["term1"], row["term2"], score))
    return build_table({"test": pairs}, None, settings, [])
