"""Entries of displays.yaml and the runs that they read."""

from pathlib import Path

import pytest

from workflow_scripts.common.errors import UserError
from workflow_scripts.config.displays import asked_runs, display_runs, find_entry
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.runs import Run

ROOT = Path(__file__).parents[2]


def test_a_display_reads_the_runs_of_its_cells():
    runs = {Run("scan-jump-x2", "transformer", "default", seed): ["p"] for seed in (1, 2)}
    runs |= {Run("cogs", "sq-transformer", "srl", 1): ["p"], Run("cogs", "transformer", "default", 1): ["p"]}
    display = {
        "rows": [{"row": "SQ", "method": "sq-transformer", "variant": {"cogs": "srl"}}, {"row": "LSTM"}],
        "columns": [{"column": "COGS", "task": "cogs"}, {"column": "JUMP", "task": "scan-jump-x2"}],
    }
    assert display_runs(display, runs) == [Run("cogs", "sq-transformer", "srl", 1)]


@pytest.mark.parametrize(
    ("paper", "kind", "name", "said"),
    [
        ("sq_transformr", "table", "table1", "no paper 'sq_transformr' in papers/; .*'sq_transformer'"),
        ("sq_transformer", "table", "tabel1", "displays.yaml: no table 'tabel1'; .*'table1'"),
        ("sq_transformer", "figure", "table1", "displays.yaml: no figure 'table1'"),
        ("sq_transformer", "analysis", "source-code", "displays.yaml: no analysis 'source-code'; .*'source-codes'"),
    ],
)
def test_an_unknown_entry_is_named_with_the_nearest_known(paper, kind, name, said):
    with pytest.raises(UserError, match=said):
        find_entry(load_catalogue(ROOT), paper, kind, name)


def test_runs_are_those_named_or_those_that_the_paper_asks_for():
    catalogue = load_catalogue(ROOT)
    run = "cogs/transformer/default/seed-7"
    assert asked_runs(catalogue, "sq_transformer", "demo", [run]) == {
        Run("cogs", "transformer", "default", 7): ["sq_transformer"]
    }
    assert len(asked_runs(catalogue, "sq_transformer", "demo", None)) > 5
    with pytest.raises(UserError, match="no scale 'large'"):
        asked_runs(catalogue, "sq_transformer", "large", None)
