"""What the job of an analysis is given: results/<scale>/specs/analyses/<paper>/<analysis>.json."""

from pathlib import Path
from typing import Any

from workflow_scripts.common.files import read_mapping
from workflow_scripts.common.run_names import Run
from workflow_scripts.common.validation import Seed, StrictModel, Word, parse_as
from workflow_scripts.config.display_schema import Analysis

PUBLISHED_KEY = ("display", "row", "column", "metric")


class AnalysedRun(StrictModel):
    """A run that an analysis reads.

    model: the package of models/. series, readout: its name in the analysis, and what the analysis
    reads of it.
    """

    task: Word
    method: Word
    variant: str
    seed: Seed
    model: Word
    series: str = ""
    readout: str | None = None

    @property
    def run(self) -> Run:
        """The name of the run. One with given weights has scores, and no model of its own."""
        return Run(self.task, self.method, self.variant, self.seed)


class AnalysisJobSpec(StrictModel):
    """An analysis with all that its job needs to know.

    entry: of `analyses` in the paper's displays.yaml. sources: <dataset>/<file> of sources.yaml.
    published: the rows of the published.csv that it reads instead of runs.
    """

    paper: Word
    analysis: Word
    scale: Word
    entry: Analysis
    runs: list[AnalysedRun]
    sources: list[str]
    published: list[dict[str, str]] | None

    @property
    def published_numbers(self) -> dict[str, dict[str, str]] | None:
        """The published rows as cell -> column -> text."""
        if self.published is None:
            return None
        numbers = {}
        for row in self.published:
            cell = "/".join(row[column] for column in PUBLISHED_KEY)
            numbers[cell] = {
                column: text for column, text in row.items() if column not in PUBLISHED_KEY
            }
        return numbers

    def to_json(self) -> dict[str, Any]:
        """Return the content of the spec file of the analysis."""
        return self.model_dump(mode="json", exclude_unset=True)


def read_analysis_job_spec(file: Path) -> AnalysisJobSpec:
    """Read the spec file of an analysis. Raises UserError if it is wrong."""
    return parse_as(AnalysisJobSpec, read_mapping(file), file)
