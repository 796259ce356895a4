"""What an analysis returns. Without torch: the audit of published numbers needs none."""

from dataclasses import dataclass, field
from pathlib import Path

import pandas

from workflow_scripts.evaluation.scores import Score


@dataclass
class AnalysisResult:
    """Scores, tables to write as <name>.csv, and notes for analysis.json."""

    scores: list[Score] = field(default_factory=list)
    files: dict[str, pandas.DataFrame] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def write_table(self, name: str, file: Path) -> None:
        """Write a table with six significant digits."""
        self.files[name].to_csv(file, index=False, float_format="%.6g")
