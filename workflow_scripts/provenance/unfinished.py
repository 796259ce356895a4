"""Files of results that were asked for and are not there, and why: results/<scale>/unfinished.json.

`show-finished` writes the file after jobs have failed. With it tables, figures and claims show the
runs that are finished, and say why the others are not.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

from pydantic import RootModel

from workflow_scripts.common.files import read_json, write_json
from workflow_scripts.common.run_names import VariantKey
from workflow_scripts.common.validation import StrictModel, parse_as
from workflow_scripts.config.paths import RESULTS
from workflow_scripts.config.schema import Config

UNFINISHED = "unfinished.json"
SCORES_OF_RUN = re.compile(
    r"runs/([^/]+)/([^/]+)/([^/]+)/seed-(\d+)/(eval|interventions)/scores\.csv"
)


class Cause(StrictModel):
    """Why a file is not there: in a word or two, for a cell, and in a sentence with what failed."""

    word: str
    sentence: str


@dataclass(frozen=True)
class Unfinished:
    """The files of a scale that are not there. causes: path below results/<scale> -> why."""

    causes: dict[str, Cause] = field(default_factory=dict)

    def __contains__(self, file: str) -> bool:
        return file in self.causes

    def drop_files(self, files: Iterable[str]) -> list[str]:
        """Return those of the files that are there."""
        return [file for file in files if file not in self.causes]

    def is_missing_any(self, files: Iterable[str]) -> bool:
        """Whether one of the files is not there."""
        return any(file in self.causes for file in files)

    @cached_property
    def evaluations(self) -> dict[VariantKey, dict[int, Cause]]:
        """Variant -> seed -> why it is not scored."""
        return self._map_scores("eval")

    @cached_property
    def interventions(self) -> dict[VariantKey, dict[int, Cause]]:
        """Variant -> seed -> why it has no scores under interventions."""
        return self._map_scores("interventions")

    def _map_scores(self, folder: str) -> dict[VariantKey, dict[int, Cause]]:
        causes: dict[VariantKey, dict[int, Cause]] = {}
        for file, cause in self.causes.items():
            match = SCORES_OF_RUN.fullmatch(file)
            if match is None or match[5] != folder:
                continue
            variant = VariantKey(match[1], match[2], match[3])
            causes.setdefault(variant, {})[int(match[4])] = cause
        return causes


NOTHING = Unfinished()


class _Content(RootModel[dict[str, Cause]]):
    """The content of unfinished.json."""


def load_unfinished(config: Config, scale: str) -> Unfinished:
    """Read results/<scale>/unfinished.json if the configuration asks for what is finished only.

    Else every file that is asked for will be made, and none is unfinished.
    """
    if not config.finished_only:
        return NOTHING
    return _load_once(RESULTS / scale / UNFINISHED)


@lru_cache
def _load_once(file: Path) -> Unfinished:
    return read_unfinished(file)


def read_unfinished(file: Path | None) -> Unfinished:
    """Read unfinished.json; None: every file is there. Raises UserError if it is not valid."""
    if file is None:
        return NOTHING
    return Unfinished(parse_as(_Content, read_json(file), file).root)


def write_unfinished(file: Path, unfinished: Unfinished) -> None:
    """Write unfinished.json, if its content changes."""
    content = _Content(unfinished.causes).model_dump()
    if file.exists() and read_json(file) == content:
        return
    write_json(file, content)
