"""What an analysis returns. Without torch: the audit of published numbers needs none."""

from dataclasses import dataclass, field
from typing import Any

import pandas


@dataclass
class AnalysisResult:
    """Rows of scores.csv, tables to write as <name>.csv, and notes for analysis.json."""

    scores: list[dict[str, Any]] = field(default_factory=list)
    files: dict[str, pandas.DataFrame] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
