"""Audit of a paper's published numbers, as an analysis: no run is read."""

from typing import Any

from workflow_scripts.analyses.printed_numbers import audit
from workflow_scripts.analyses.trained_runs import AnalysisResult
from workflow_scripts.evaluation.published import Key, Published


def analyse(published: dict[Key, Published], given: dict[str, Any]) -> AnalysisResult:
    """Scores and files cv_ratios.csv and printed_twice.csv; the options are those of `printed_numbers.audit`."""
    scores, tables = audit(published, given)
    return AnalysisResult(scores, tables)
