"""STS benchmark (Cer et al. 2017): the similarity of two sentences, from 0 to 5.

Options of `prepare`, in addition to those of `datasets.sentences`:

in_distribution: a source of sentences in upstream's second column, e.g. `images`. `train`, `valid` and
    `in_distribution` (from upstream's test part) then contain only this source. None: all sources, and no such split.
test: the source of the test set, from upstream's test part; None: all sources.
"""

from pathlib import Path
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import parse_as, suggest_name
from workflow_scripts.data.datasets.sentences import Sentence, SentenceOptions, build_table, parse_number, read_tsv
from workflow_scripts.data.prepared import TableDataset
from workflow_scripts.data.sources.task_sources import find_source, open_sources
from workflow_scripts.data.stand_ins import sts as stand_in

WHERE = "options of workflow_scripts.data.datasets.sts"
ARCHIVE = "stsb/Stsbenchmark.tar.gz"
PARTS = ("train", "dev", "test")
COLUMNS = ("genre", "source", "year", "id", "score", "sentence1", "sentence2")


class Options(SentenceOptions):
    """See the module's docstring."""

    in_distribution: str | None = None
    test: str | None = None


def prepare(options: dict[str, Any], sources: dict[str, Path]) -> TableDataset:
    """Prepare the splits. Raises UserError for wrong options or a missing or malformed source."""
    settings = parse_as(Options, options, WHERE)
    with open_sources(settings.origin, sources, stand_in.write_sts, settings.seed) as files:
        found = read_sts(files)
    known = {source for rows in found.values() for source, _ in rows}
    for key in ("in_distribution", "test"):
        if (wanted := getattr(settings, key)) and wanted not in known:
            raise UserError(f"{WHERE}: key '{key}' is '{wanted}'; {suggest_name(wanted, known)}")

    def of(part: str, source: str | None) -> list[Sentence]:
        return [row for origin, row in found[part] if source in (None, origin)]

    splits = {"train": of("train", settings.in_distribution), "valid": of("dev", settings.in_distribution)}
    if settings.in_distribution:
        splits["in_distribution"] = of("test", settings.in_distribution)
    splits["test"] = of("test", settings.test)
    return build_table(splits, None, settings, [])


def read_sts(sources: dict[str, Path]) -> dict[str, list[tuple[str, Sentence]]]:
    """Read upstream's archive or its three files: part -> (source, pair) of each line."""
    found: dict[str, list[tuple[str, Sentence]]] = {part: [] for part in PARTS}
    for part, rows in found.items():
        file = f"sts-{part}.csv"
        path = find_source(sources, WHERE, ARCHIVE, f"stsb/{file}")
        for line, row in read_tsv(path, file, COLUMNS):
            score = parse_number(row["score"], 0, 5, f"{path}: {file}:{line}")
            rows.append((row["source"], Sentence(f"{part}-{line}", row["sentence1"], row["sentence2"], score)))
    return found
