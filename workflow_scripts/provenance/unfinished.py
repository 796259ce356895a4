"""Files of results that were asked for and are not there, and why: results/<scale>/unfinished.json.

`show-finished` writes the file after jobs have failed. With it tables, figures and claims show the
runs that are finished, and say why the others are not.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

from pydantic import RootModel

from workflow_scripts.common.files import read_json, write_json
from workflow_scripts.common.result_folders import RESULTS, AnalysisFolder, RunFolder, ScaleFolder
from workflow_scripts.common.run_names import Run, VariantKey
from workflow_scripts.common.validation import StrictModel, parse_as
from workflow_scripts.config.schema import Config


class Cause(StrictModel):
    """Why a file is not there: in a word or two, for a cell, and in a sentence with what failed."""

    word: str
    sentence: str


@dataclass(frozen=True)
class Unfinished:
    """The files of a scale that are not there, and why."""

    causes: dict[Path, Cause] = field(default_factory=dict)

    def __contains__(self, file: Path) -> bool:
        return file in self.causes

    def drop_files(self, files: Iterable[Path]) -> list[Path]:
        """Return those of the files that are there."""
        return [file for file in files if file not in self.causes]

    def is_missing_any(self, files: Iterable[Path]) -> bool:
        """Whether one of the files is not there."""
        return any(file in self.causes for file in files)

    @cached_property
    def evaluations(self) -> dict[VariantKey, dict[int, Cause]]:
        """Variant -> seed -> why it is not scored."""
        return self._map_scores(lambda run: run.evaluation.scores)

    @cached_property
    def interventions(self) -> dict[VariantKey, dict[int, Cause]]:
        """Variant -> seed -> why it has no scores under interventions."""
        return self._map_scores(lambda run: run.interventions.scores)

    @cached_property
    def analyses(self) -> dict[tuple[str, str], Cause]:
        """(paper, analysis) -> why it is not made."""
        causes: dict[tuple[str, str], Cause] = {}
        for file, cause in self.causes.items():
            folder = AnalysisFolder(file.parent)
            if folder.manifest == file:
                causes[folder.paper, folder.name] = cause
        return causes

    def _map_scores(
        self, locate: Callable[[RunFolder], Path]
    ) -> dict[VariantKey, dict[int, Cause]]:
        """Return variant -> seed -> cause, of the files that `locate` finds in folders of runs."""
        causes: dict[VariantKey, dict[int, Cause]] = {}
        for file, cause in self.causes.items():
            folder = RunFolder(file.parent.parent)
            if locate(folder) != file or len(folder.path.parts) < 4:
                continue
            run = Run.parse(folder.name)
            causes.setdefault(run.variant_key, {})[run.seed] = cause
        return causes


NOTHING = Unfinished()


class _Content(RootModel[dict[str, Cause]]):
    """The content of unfinished.json: path below the folder of the scale -> cause."""


def load_unfinished(config: Config, scale: str) -> Unfinished:
    """Read results/<scale>/unfinished.json if the configuration asks for what is finished only.

    Without this file, all that are asked for are there. In another call all will be made.
    """
    if not config.finished_only:
        return NOTHING
    return _load_once(RESULTS.scale(scale).unfinished)


@lru_cache
def _load_once(file: Path) -> Unfinished:
    return read_unfinished(file if file.exists() else None)


def read_unfinished(file: Path | None) -> Unfinished:
    """Read unfinished.json; None: every file is there. Raises UserError if it is not valid."""
    if file is None:
        return NOTHING
    content = parse_as(_Content, read_json(file), file).root
    return Unfinished({file.parent / name: cause for name, cause in content.items()})


def write_unfinished(scale: ScaleFolder, unfinished: Unfinished) -> None:
    """Write unfinished.json of a scale, if its content changes; delete it if nothing is missing."""
    causes = {}
    for file, cause in unfinished.causes.items():
        causes[file.relative_to(scale.path).as_posix()] = cause
    if not causes:
        scale.unfinished.unlink(missing_ok=True)
        return
    content = _Content(causes).model_dump()
    if scale.unfinished.exists() and read_json(scale.unfinished) == content:
        return
    write_json(scale.unfinished, content)
