"""Entries of displays.yaml and the runs that they read."""

from pathlib import Path

import pytest

from workflow_scripts.common.errors import UserError
from workflow_scripts.config.axes import merge_extended
from workflow_scripts.config.catalogue import Paper, Run
from workflow_scripts.config.display_schema import list_display_analyses
from workflow_scripts.config.displays import (
    find_entry,
    find_intervened_variants,
    select_claimed_displays,
    select_display_runs,
    select_paper_runs,
    select_shown_displays,
)
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.schema import Experiments

ROOT = Path(__file__).parents[2]


def test_a_display_reads_the_runs_of_its_cells():
    runs = {Run("scan-jump-x2", "transformer", "default", seed): ["p"] for seed in (1, 2)}
    runs |= {Run("cogs", "sq-transformer", "srl", 1): ["p"], Run("cogs", "transformer", "default", 1): ["p"]}
    display = {
        "rows": [{"row": "SQ", "method": "sq-transformer", "variant": {"cogs": "srl"}}, {"row": "LSTM"}],
        "columns": [{"column": "COGS", "task": "cogs"}, {"column": "JUMP", "task": "scan-jump-x2"}],
    }
    assert select_display_runs(display, runs) == [Run("cogs", "sq-transformer", "srl", 1)]


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
    assert select_paper_runs(catalogue, "sq_transformer", "demo", [run]) == {
        Run("cogs", "transformer", "default", 7): ["sq_transformer"]
    }
    assert len(select_paper_runs(catalogue, "sq_transformer", "demo", None)) > 5
    with pytest.raises(UserError, match="no scale 'large'"):
        select_paper_runs(catalogue, "sq_transformer", "large", None)


def a_paper(**displays: dict) -> Paper:
    analyses = {"curves": {"runs": [{"task": "cogs", "method": "lrf", "variant": "default"}]}, "audit": {}}
    claims = [{"left": "scores/SQ/JUMP", "right": ["pieces/a/b", "scores/SQ/COGS"]}, {"left": "drawn/x/y", "right": 3}]
    experiments = Experiments(title="", citation="")
    return Paper(experiments, displays, analyses, claims)


def test_runs_under_an_intervention_may_be_of_several_tasks():
    runs = [{"task": ["idm", "sst"], "method": "gpt2-small", "variant": "ft", "intervention": "synonyms"}]
    assert find_intervened_variants([{"runs": runs}]) == {(task, "gpt2-small", "ft") for task in ("idm", "sst")}


def test_a_display_is_made_where_it_shows_a_run_or_an_analysis_of_one_or_needs_none():
    row = {"row": "SQ", "method": "sq-transformer", "variant": "sal", "task": "scan-jump-x2"}
    paper = a_paper(
        scores={"rows": [row], "columns": [{"column": "JUMP"}]},
        drawn={"analyses": ["curves"]},
        pieces={"analyses": ["audit"]},
        printed={"rows": [{"row": "LSTM"}], "columns": [{"column": "JUMP"}]},
    )
    sal, lrf = Run("scan-jump-x2", "sq-transformer", "sal", 1), Run("cogs", "lrf", "default", 1)
    assert list(select_shown_displays(paper, [sal])) == ["scores", "pieces"]
    assert list(select_shown_displays(paper, [lrf])) == ["drawn", "pieces"]
    assert list(select_shown_displays(paper, [])) == ["pieces"]


def test_the_displays_of_claims_are_those_whose_cells_a_claim_compares():
    paper = a_paper(scores={"title": "s"}, drawn={"analyses": ["curves"]}, pieces={"analyses": ["audit"]}, printed={})
    assert list(select_claimed_displays(paper)) == ["scores", "pieces", "drawn"]
    assert list(select_claimed_displays(paper, [])) == ["pieces"]


@pytest.mark.parametrize("scale", ["demo", "small", "full"])
def test_what_a_scale_shows_covers_every_run_that_it_asks_for(scale):
    """No run is trained in vain: each is shown, or others may start from it."""
    catalogue = load_catalogue(ROOT)
    for key, paper in catalogue.papers.items():
        runs = select_paper_runs(catalogue, key, scale, None)
        shown = select_shown_displays(paper, runs)
        read = [*shown.values(), *(paper.analyses[name] for d in shown.values() for name in list_display_analyses(d))]
        unseen = set(runs) - {run for entry in read for run in select_display_runs(entry, runs)}
        assert {run for run in unseen if not run.variant.startswith("pretrain")} == set()


def test_an_entry_extends_another_and_merges_its_options():
    entries = {
        "a": {"module": "m", "title": "A", "options": {"x": 1, "y": [1]}},
        "b": {"extends": "a", "title": "B", "options": {"y": [2]}},
        "c": {"extends": "b", "runs": []},
    }
    assert merge_extended(entries, "c", "") == {
        "module": "m", "title": "B", "options": {"x": 1, "y": [2]}, "runs": []
    }  # fmt: skip
    entries["a"]["extends"] = "c"
    with pytest.raises(UserError, match=r"displays\.yaml:3: extends 'c'"):
        merge_extended(entries, "c", "displays.yaml:3")
