"""Planned seeds are shown in no table, figure or claim before the last one is scored."""

import csv
import io
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.reporting.made_up import write_run
from workflow_scripts.common.files import write_json
from workflow_scripts.common.result_folders import ScaleFolder
from workflow_scripts.common.run_names import Run, VariantKey
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.evaluation.scores import Score, write_scores
from workflow_scripts.reporting.claims.judging import format_claims, judge_paper
from workflow_scripts.reporting.evidence.evidence import read_evidence
from workflow_scripts.reporting.evidence.paper_results import PaperResults
from workflow_scripts.reporting.evidence.withholding import find_withheld
from workflow_scripts.reporting.figures.figure import draw_figure
from workflow_scripts.reporting.tables.cells import make_cells
from workflow_scripts.reporting.tables.table import make_table

ROOT = Path(__file__).parents[3]
CATALOGUE = load_catalogue(ROOT)
PLANNED, PILOTS = range(101, 109), (61, 62, 63)
SAL, TRANSFORMER = (
    VariantKey("scan-jump-x2", "sq-transformer", "sal"),
    VariantKey("scan-jump-x2", "transformer", "default"),
)
SRL = VariantKey("cognition", "sq-transformer", "srl")


def score(
    results: Path, variant: tuple[str, str, str], seeds: Iterable[int], accuracy: float = 60.0
) -> list[Run]:
    runs = [Run(*variant, seed) for seed in seeds]
    for run in runs:
        write_run(results, run, accuracy, readouts={"last": accuracy, "in_distribution": accuracy})
    return runs


@pytest.fixture
def no_analyses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Analyses of SQ-Transformer that found nothing."""
    monkeypatch.chdir(ROOT)
    for name in CATALOGUE.papers["sq_transformer"].analyses:
        (tmp_path / f"analyses/sq_transformer/{name}").mkdir(parents=True)
        write_scores(tmp_path / f"analyses/sq_transformer/{name}/scores.csv", [])


def cells(text: str) -> dict[tuple[str, str], dict[str, str]]:
    return {(row["row"], row["column"]): row for row in csv.DictReader(io.StringIO(text))}


def test_secondary_claims_have_the_seeds_of_the_plan_and_primary_ones_may_have_their_own():
    planned = CATALOGUE.papers["sq_transformer"].list_planned_seeds("small")
    assert planned[SAL] == planned[TRANSFORMER] == list(PLANNED)
    assert planned["scan-around-right", "sq-transformer", "sal-entropy-3"] == [
        101,
        102,
        103,
        104,
        105,
    ]
    # Of the secondary claims of CAT.
    assert planned.keys().isdisjoint(CATALOGUE.papers["cat"].list_planned_seeds("small"))
    assert CATALOGUE.papers["cat"].list_planned_seeds("small")[
        "bird", "bert-matched", "ft@paws"
    ] == list(range(101, 110))
    assert CATALOGUE.papers["recompose"].list_planned_seeds("small") == {}


def find_results(paper: str, folder: Path, scale: str = "small") -> PaperResults:
    return PaperResults(CATALOGUE, paper, scale, ScaleFolder(folder))


@pytest.mark.parametrize(
    ("shown", "scored", "expected"),
    [
        ([101, 102], [101, 102], "withheld: 2 of 8 planned seeds run"),
        ([61, 101], [61, 101], "withheld: 1 of 8 planned seeds run"),
        (PILOTS, [*PILOTS, 101], None),
        (PLANNED, PLANNED, None),
        ([104], PLANNED, None),  # a single one of all that are done, such as the median seed
        ([None], [], None),  # a number without a seed
    ],
)
def test_planned_seeds_are_withheld_before_all_are_scored(tmp_path, shown, scored, expected):
    score(tmp_path, SAL, scored)
    found = find_withheld(
        find_results("sq_transformer", tmp_path, "small"), [(SAL, seed) for seed in shown]
    )
    assert found == ({SAL: expected} if expected else {})
    # Neither at the scale of no plan, nor of a variant that no claim of a plan compares.
    assert (
        find_withheld(
            find_results("sq_transformer", tmp_path, "full"), [(SAL, seed) for seed in shown]
        )
        == {}
    )
    other = VariantKey("scan-jump-x2", "sq-transformer", "none")
    assert (
        find_withheld(
            find_results("sq_transformer", tmp_path, "small"), [(other, seed) for seed in shown]
        )
        == {}
    )


def test_the_plan_of_another_paper_counts_where_the_own_one_names_no_claim(tmp_path):
    score(tmp_path, SRL, [101])
    found = find_withheld(find_results("lrf", tmp_path), [(SRL, 101)])
    assert found == {SRL: "withheld: 1 of 8 planned seeds run"}


def test_scores_under_interventions_wait_for_the_last_seed_of_their_own(tmp_path):
    carma = VariantKey("idm", "gpt2-small", "carma")
    runs = score(tmp_path, carma, range(101, 107))
    results = find_results("carma", tmp_path)
    shown = [(run.variant_key, run.seed) for run in runs]
    for run in runs[:5]:
        file = results.folder.run(run).interventions.scores
        file.parent.mkdir()
        write_scores(file, [])
    reason = "withheld: 5 of 6 planned seeds run"
    assert find_withheld(results, shown) == {}
    assert find_withheld(results, shown, intervened={carma}) == {carma: reason}


def test_a_number_about_several_models_waits_for_the_last_seed_of_each(tmp_path):
    variants = CATALOGUE.papers["lrf"].analyses["compound-odds"].variants
    plain = VariantKey("cognition-compounds", "lrf", "plain")
    planned = CATALOGUE.papers["lrf"].list_planned_seeds("small")
    results = find_results("lrf", tmp_path)
    analysis = results.folder.analysis("lrf", "compound-odds")
    runs = []
    for variant in sorted(variants):
        seeds = planned[variant]
        if variant == plain:
            seeds = seeds[:-1]
        runs += score(tmp_path, variant, seeds)
    odds = {
        "task": "cognition-compounds",
        "split": "cg_test",
        "subset": "all",
        "metric": "log_odds",
        "item_set": "LRF over the Transformer",
        "value": 0.1,
        "unit": "log odds",
        "n": 6,
        "protocol": "reduced",
    }
    analysis.path.mkdir(parents=True)
    write_scores(analysis.scores, [Score(**dict.fromkeys(Score._fields) | odds)])
    write_json(analysis.manifest, {"runs": [str(run) for run in runs]})
    display_name = "table-compounds-odds"
    display = CATALOGUE.papers["lrf"].displays[display_name]
    first, *_ = make_cells(display_name, display, read_evidence(results, [], [display]))
    assert (first.status, first.computed) == ("withheld", None)
    assert first.note == "withheld: 5 of 6 planned seeds run"
    score(tmp_path, plain, planned[plain][-1:])
    first, *_ = make_cells(display_name, display, read_evidence(results, [], [display]))
    assert (first.status, first.computed) == ("computed", 0.1)


def test_tables_have_the_number_of_seeds_and_claims_no_value(tmp_path, no_analyses):
    runs = score(tmp_path, SAL, (101, 102), 61.5) + score(tmp_path, TRANSFORMER, PLANNED, 7.5)
    results = find_results("sq_transformer", tmp_path)
    for name in (
        "table-readings",
        "text-5.2",
        "table4",
        "table1",
        "text-1",
        "table-codes",
        "table-protocol",
    ):
        made = make_table(results, name, runs, tests={})
        mine = [row for row in made.rows if row.status == "withheld"]
        assert mine and all(
            row.note.startswith("withheld: 2 of 8 planned seeds run") for row in mine
        ), name
        for row in mine:
            assert {row.reproduced, row.std, row.n_seeds, row.ci_low, row.ci_high} == {None}
        for text in made.files.values():
            assert "withheld: 2 of 8 planned seeds run" in text.replace("~", " ").replace(
                "\u00a0", " "
            )
    table = cells(make_table(results, "table1", runs, tests={}).files["csv"])
    assert table["Transformer", "JUMP"]["status"] == "measured"
    outcomes = judge_paper(find_results("sq_transformer", tmp_path), runs)
    by_name = {outcome.claim.claim: outcome for outcome in outcomes}
    for name in ("sal-official-last-addjump", "sq-over-transformer-addjump"):
        assert by_name[name].measurement is None and by_name[name].verdict in (
            "not run",
            "no verdict",
        )
    _, sides = format_claims({"sq_transformer": outcomes})
    assert not [
        row for row in csv.DictReader(io.StringIO(sides)) if row["seed"] and "SAL" in row["cell"]
    ]


def test_a_primary_claim_still_counts_its_seeds(tmp_path, no_analyses):
    changed = VariantKey("scan-jump-x2", "sq-transformer", "sal-entropy-3")
    runs = score(tmp_path, changed, (101, 102, 103)) + score(tmp_path, TRANSFORMER, PLANNED)
    outcomes = judge_paper(find_results("sq_transformer", tmp_path), runs)
    (primary,) = (outcome for outcome in outcomes if outcome.claim.claim == "sal-success-addjump")
    assert (primary.n_seeds, primary.reason, primary.measurement) == (3, "3 of 8 seeds", None)


def test_figures_leave_them_out_and_say_so(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    runs = score(tmp_path, ("idm", "gpt2-small", "ft"), (101, 102)) + score(
        tmp_path, ("idm", "gpt2-small", "carma"), range(101, 107)
    )
    drawn = draw_figure(find_results("carma", tmp_path), "figure3", runs)
    found = list(csv.DictReader(io.StringIO(drawn.csv)))
    assert {row["variant"] for row in found} == {"carma"} and len(found) == 6
    assert drawn.footer.endswith("; idm/gpt2-small/ft withheld: 2 of 6 planned seeds run")
