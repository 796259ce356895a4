"""What the jobs of a workflow are given, as rules ask for it, and as results/<scale>/specs/ has it.

On a cluster each job starts Snakemake again. That one takes the spec files that are there:
nothing here reads the catalogue or the papers.
"""

from functools import cache
from pathlib import Path
from typing import Protocol

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_mapping
from workflow_scripts.common.result_folders import RESULTS, SpecFolder
from workflow_scripts.common.run_names import Run, VariantKey
from workflow_scripts.data.data_spec import DataSpec, read_data_spec
from workflow_scripts.interventions.settings import CandidateSpec, read_candidate_spec
from workflow_scripts.provenance.analysis_job_spec import AnalysisJobSpec, read_analysis_job_spec
from workflow_scripts.provenance.run_job_spec import RunJobSpec, read_run_job_spec


class Specs(Protocol):
    """What the jobs of a workflow are given, from the catalogue or from spec files."""

    def get_data(self, task: str, scale: str) -> DataSpec:
        """Return the data spec of a task."""
        ...

    def get_candidates(self, task: str, scale: str) -> CandidateSpec:
        """Return the spec of the synonym candidates of a task."""
        ...

    def get_run(self, run: Run, scale: str) -> RunJobSpec:
        """Return what the jobs of a run are given."""
        ...

    def get_search(self, variant: VariantKey, scale: str) -> RunJobSpec:
        """Return what the search before the trainings of a variant is given.

        Raises UserError if there is none.
        """
        ...

    def get_analysis(self, paper: str, analysis: str, scale: str) -> AnalysisJobSpec:
        """Return what the job of an analysis is given."""
        ...

    def estimate_seconds(self, rule: str, wildcards: dict[str, str], device: str) -> float | None:
        """Estimate the time of a job on a run, or of a search; None if it is unknown."""
        ...


class SpecFiles:
    """The specs that `write_spec_files` has written. Each file is read once."""

    def __init__(self) -> None:
        self.get_run = cache(self._read_run)
        self.get_search = cache(self._read_search)
        self.get_analysis = cache(self._read_analysis)

    def get_data(self, task: str, scale: str) -> DataSpec:
        """Read the data spec of a task."""
        file = _require_file(_get_spec_folder(scale).data(task))
        return read_data_spec(read_mapping(file), file)

    def get_candidates(self, task: str, scale: str) -> CandidateSpec:
        """Read the spec of the synonym candidates of a task."""
        file = _require_file(_get_spec_folder(scale).candidates(task))
        return read_candidate_spec(read_mapping(file), file)

    def estimate_seconds(self, rule: str, wildcards: dict[str, str], device: str) -> float | None:
        """Return None: a job that has started asks for no time."""
        return None

    def _read_run(self, run: Run, scale: str) -> RunJobSpec:
        return read_run_job_spec(_require_file(_get_spec_folder(scale).run(run)))

    def _read_search(self, variant: VariantKey, scale: str) -> RunJobSpec:
        return read_run_job_spec(_require_file(_get_spec_folder(scale).search(variant)))

    def _read_analysis(self, paper: str, analysis: str, scale: str) -> AnalysisJobSpec:
        return read_analysis_job_spec(
            _require_file(_get_spec_folder(scale).analysis(paper, analysis))
        )


def _get_spec_folder(scale: str) -> SpecFolder:
    return RESULTS.scale(scale).specs


def _require_file(file: Path) -> Path:
    """Return a spec file. Raises UserError if it does not exist."""
    if not file.exists():
        raise UserError(
            f"{file} does not exist; ./reproduce writes it before the job: call it again"
        )
    return file
