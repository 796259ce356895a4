"""The audit of published numbers against values worked out by hand, and against a simulation."""

import math

import numpy as np
import pytest
from scipy import stats

from tests.analyses.small_runs import ROOT
from workflow_scripts.__main__ import main
from workflow_scripts.analyses import audit
from workflow_scripts.analyses.options.audit import Options
from workflow_scripts.common.errors import UserError
from workflow_scripts.evaluation.published_numbers import Published, read_published
from workflow_scripts.evaluation.scores import read_scores


def number(printed: str, value: float | None = None) -> Published:
    return Published(
        printed, float(printed) if value is None else value, None, None, "percent", "T", ""
    )


# 7.146 and 9.605: upper 2.5% points of F with (5, 5) and (4, 4) degrees of freedom, from the usual
# tables.
@pytest.mark.parametrize(("runs", "critical"), [(6, 7.146), (5, 9.605)])
def test_the_null_range_is_that_of_the_tables_of_f(runs: int, critical: float) -> None:
    low, high = audit.compute_null_interval(runs)
    assert high == pytest.approx(math.sqrt(critical), rel=1e-3)
    assert low == pytest.approx(1 / high)


def test_the_t_of_a_mean() -> None:
    # Mean 7/3, variance 7/3, so that t = (7/3) / sqrt(7/9).
    assert audit.compute_t_value(np.array([1.0, 2.0, 4.0])) == pytest.approx(math.sqrt(7))


def print_numbers(models: dict[str, tuple]) -> dict:
    """Published ConsistSyn and CV from model -> ((score, CV) of CARMA, (score, CV) of FT)."""
    return {
        ("t", f"{model} {version}", f"25% {name}", metric): number(str(value))
        for model, sides in models.items()
        for version, values in zip(("CARMA", "FT"), sides, strict=True)
        for name, metric, value in zip(("CS", "CV"), ("consistency", "cv"), values, strict=True)
    }


# The second model has twice the spread under CARMA, and its ConsistSyn is 2 points higher.
PRINTED = print_numbers({"M": ((50, 0.01), (50, 0.01)), "N": ((52, 0.02), (50, 0.01))})
OPTIONS = Options(displays={"idm": "t"}, rates={"25%": 0.25}, models=["M", "N"])


def test_means_over_cells() -> None:
    analysis = audit.analyse(PRINTED, OPTIONS)
    found = {(s.metric, s.rate, s.task): s.value for s in analysis.scores}
    assert found["cv_ratio_mean", 0.25, "idm"] == pytest.approx(math.sqrt(2))
    assert found["difference_mean", None, "all"] == 1
    assert found["cv_ratio_inside", None, "all"] == found["cv_ratio_count", None, "all"] == 2


def test_a_misprinted_cv_leaves_its_score() -> None:
    options = OPTIONS.model_copy(update={"misprinted": [("t", "N", "25%")]})
    more = audit.analyse(PRINTED, options)
    found = {(s.metric, s.task, s.subset): (s.value, s.n) for s in more.scores}
    assert found["cv_ratio_count", "all", "all"] == (1, 2)
    assert found["cv_ratio_mean", "all", "all"] == (pytest.approx(1), 1)
    assert found["difference_mean", "all", "all"] == (1, 2)


def test_without_any_ratio_there_are_differences_alone() -> None:
    options = OPTIONS.model_copy(update={"misprinted": [("t", name, "25%") for name in "MN"]})
    found = {s.metric: s.value for s in audit.analyse(PRINTED, options).scores}
    assert found["cv_ratio_count"] == 0 and found["difference_mean"] == 1
    assert "cv_ratio_mean" not in found


def test_an_audit_of_nothing_is_an_error() -> None:
    with pytest.raises(UserError, match="finds no cell with both versions"):
        audit.analyse({}, OPTIONS)


def test_what_the_notes_say_of_the_paper(tmp_path, monkeypatch) -> None:
    """26 of 27 ratios are inside the range of chance."""
    monkeypatch.chdir(ROOT)
    out = tmp_path / "analyses/recompose/audit-carma"
    where = ["--scale", "demo", "--results", str(tmp_path), "--out", str(out), "--runs"]
    assert main(["analyse", "--paper", "recompose", "--analysis", "audit-carma", *where]) == 0
    scores = read_scores(out / "scores.csv")
    found = {(s.metric, s.task, s.subset): s.value for s in scores}
    means = {(s.task, s.rate): s.value for s in scores if s.metric == "cv_ratio_mean"}
    assert (found["cv_ratio_inside", "all", "all"], found["cv_ratio_count", "all", "all"]) == (
        26,
        27,
    )
    ends = [found[f"cv_ratio_null_{end}", "all", None] for end in ("low", "high")]
    assert ends == pytest.approx([0.374, 2.673], abs=1e-3)
    # By hand, without the module: the geometric mean, and the t of its logarithm.
    published = read_published(ROOT / "papers/carma/published.csv")
    by_rate: dict[tuple[str, float], list[float]] = {}
    for (display, row, column, metric), cv in published.items():
        if display in ("table4", "table5") and metric == "cv" and row.endswith("CARMA"):
            other = published[display, row.replace("CARMA", "FT"), column, metric]
            place = (
                {"table4": "idm", "table5": "sst"}[display],
                {"25% CV": 0.25, "40% CV": 0.4}[column],
            )
            by_rate.setdefault(place, []).extend(
                [math.log(cv.value / other.value)] if cv.value < 0.5 else []
            )
    for (task, rate), some in by_rate.items():
        assert means[task, rate] == pytest.approx(math.exp(np.mean(some)))
    logs = [log for some in by_rate.values() for log in some]
    assert found["cv_ratio_mean", "all", "all"] == pytest.approx(math.exp(sum(logs) / len(logs)))
    assert found["cv_ratio_mean", "all", "all"] == pytest.approx(0.895, abs=5e-4)
    assert found["cv_ratio_t", "all", "all"] == pytest.approx(stats.ttest_1samp(logs, 0).statistic)
    assert found["difference_mean", "idm", "all"] == pytest.approx(-0.167, abs=1e-3)
    assert found["difference_mean", "sst", "all"] == pytest.approx(0.281, abs=1e-3)
