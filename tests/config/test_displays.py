"""Entries of displays.yaml and the runs that they read."""

from pathlib import Path

import pytest

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.axes import merge_extended
from workflow_scripts.config.catalogue import Paper
from workflow_scripts.config.display_schema import Analysis, Claim, FigureDisplay, TableDisplay
from workflow_scripts.config.displays import (
    find_analysis,
    find_figure,
    find_intervened_variants,
    find_table,
    select_display_runs,
    select_paper_runs,
)
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.schema import Experiments

ROOT = Path(__file__).parents[2]


NAMES = {"source": "Table 9", "title": "Made up", "group": "Main"}


def a_table(**fields) -> TableDisplay:
    return TableDisplay.model_validate({"kind": "table", **NAMES, **fields})


def a_figure(**fields) -> FigureDisplay:
    return FigureDisplay.model_validate(
        {"kind": "figure", "module": "score_bars", **NAMES, **fields}
    )


def a_claim(name: str, left: str, right: object) -> Claim:
    texts = {"claim": name, "statement": "It is better", "source": "Table 9", "unit": "points"}
    return Claim.model_validate(texts | {"relation": "greater", "left": left, "right": right})


def test_a_display_reads_the_runs_of_its_cells():
    runs = {Run("scan-jump-x2", "transformer", "default", seed): ["p"] for seed in (1, 2)}
    runs |= {
        Run("cogs", "sq-transformer", "srl", 1): ["p"],
        Run("cogs", "transformer", "default", 1): ["p"],
    }
    display = a_table(
        rows=[
            {"row": "SQ", "method": "sq-transformer", "variant": {"cogs": "srl"}},
            {"row": "LSTM"},
        ],
        columns=[{"column": "COGS", "task": "cogs"}, {"column": "JUMP", "task": "scan-jump-x2"}],
    )
    assert select_display_runs(display, runs) == [Run("cogs", "sq-transformer", "srl", 1)]


@pytest.mark.parametrize(
    ("paper", "kind", "name", "said"),
    [
        (
            "sq_transformr",
            "table",
            "table1",
            "no paper 'sq_transformr' in papers/; .*'sq_transformer'",
        ),
        ("sq_transformer", "table", "tabel1", "displays.yaml: no table 'tabel1'; .*'table1'"),
        ("sq_transformer", "figure", "table1", "displays.yaml: no figure 'table1'"),
        (
            "sq_transformer",
            "analysis",
            "source-code",
            "displays.yaml: no analysis 'source-code'; .*'source-codes'",
        ),
    ],
)
def test_an_unknown_entry_is_named_with_the_nearest_known(paper, kind, name, said):
    with pytest.raises(UserError, match=said):
        find = {"table": find_table, "figure": find_figure, "analysis": find_analysis}[kind]
        find(load_catalogue(ROOT), paper, name)


def test_runs_are_those_named_or_those_that_the_paper_asks_for():
    catalogue = load_catalogue(ROOT)
    run = "cogs/transformer/default/seed-7"
    assert select_paper_runs(catalogue, "sq_transformer", "demo", [run]) == {
        Run("cogs", "transformer", "default", 7): ["sq_transformer"]
    }
    assert len(select_paper_runs(catalogue, "sq_transformer", "demo", None)) > 5
    with pytest.raises(UserError, match="no scale 'large'"):
        select_paper_runs(catalogue, "sq_transformer", "large", None)


def a_paper(**displays: TableDisplay | FigureDisplay) -> Paper:
    runs = [{"task": "cogs", "method": "lrf", "variant": "default"}]
    analyses = {
        "curves": Analysis.model_validate({"module": "neighbours", "runs": runs}),
        "audit": Analysis(module="audit", published="carma"),
    }
    claims = [
        a_claim("a", "scores/SQ/JUMP", "pieces/a/b"),
        a_claim("b", "scores/SQ/COGS", 1),
        a_claim("c", "drawn/x/y", 3),
    ]
    experiments = Experiments(title="", citation="")
    return Paper(experiments, displays, analyses, claims)


def test_runs_under_an_intervention_may_be_of_several_tasks():
    runs = [
        {
            "task": ["idm", "sst"],
            "method": "gpt2-small",
            "variant": "ft",
            "intervention": "synonyms",
        }
    ]
    analysis = Analysis.model_validate({"module": "item_sets", "runs": runs})
    assert find_intervened_variants([analysis]) == {
        (task, "gpt2-small", "ft") for task in ("idm", "sst")
    }


def test_a_display_is_made_where_it_shows_a_run_or_an_analysis_of_one_or_needs_none():
    row = {"row": "SQ", "method": "sq-transformer", "variant": "sal", "task": "scan-jump-x2"}
    paper = a_paper(
        scores=a_table(rows=[row], columns=[{"column": "JUMP"}]),
        drawn=a_figure(analyses=["curves"]),
        pieces=a_figure(analyses=["audit"]),
        printed=a_table(rows=[{"row": "LSTM"}], columns=[{"column": "JUMP"}]),
    )
    sal, lrf = Run("scan-jump-x2", "sq-transformer", "sal", 1), Run("cogs", "lrf", "default", 1)
    assert list(paper.select_shown_displays([sal])) == ["scores", "pieces"]
    assert list(paper.select_shown_displays([lrf])) == ["drawn", "pieces"]
    assert list(paper.select_shown_displays([])) == ["pieces"]


def test_the_displays_of_claims_are_those_whose_cells_a_claim_compares():
    paper = a_paper(
        scores=a_figure(),
        drawn=a_figure(analyses=["curves"]),
        pieces=a_figure(analyses=["audit"]),
        printed=a_figure(),
    )
    assert list(paper.select_claimed_displays()) == ["scores", "pieces", "drawn"]
    assert list(paper.select_claimed_displays([])) == ["pieces"]


@pytest.mark.parametrize("scale", ["demo", "small", "full"])
def test_what_a_scale_shows_covers_every_run_that_it_asks_for(scale):
    """No run is trained in vain: each is shown, or others may start from it."""
    catalogue = load_catalogue(ROOT)
    for key, paper in catalogue.papers.items():
        runs = select_paper_runs(catalogue, key, scale, None)
        shown = paper.select_shown_displays(runs)
        read = [
            *shown.values(),
            *(paper.analyses[name] for d in shown.values() for name in d.list_analyses()),
        ]
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
