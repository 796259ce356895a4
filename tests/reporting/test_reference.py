"""The committed verdicts follow from the committed scores, by seed, of the same folder."""

import pytest

from tests.analyses.small_runs import ROOT
from tests.reporting.reference import REFERENCE, write_reference


@pytest.mark.slow
def test_verdicts_follow_from_scores(tmp_path, monkeypatch):
    """Where results are added: `python -m tests.reporting.reference` writes both files."""
    monkeypatch.chdir(ROOT)
    write_reference(tmp_path / "claims.csv")
    for name in ("claims.csv", "claim_sides.csv"):
        made, committed = (
            (folder / name).read_text().splitlines() for folder in (tmp_path, REFERENCE)
        )
        assert made == committed
