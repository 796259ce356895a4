"""The join of published numbers, displays and scores."""

import itertools

import pytest

from workflow_scripts.errors import UserError
from workflow_scripts.reporting.cells import Evidence, make_cells, read_published
from workflow_scripts.reporting.spec import TableDisplay

HEADER = "display,row,column,metric,printed,value,unit,std,n_seeds,source,note\n"
DISPLAY = TableDisplay.model_validate(
    {
        "kind": "table",
        "source": "Table 9",
        "title": "Made up",
        "group": "Main",
        "rows": [
            {"row": "Old"},
            {"row": "Plain", "method": "plain", "variant": "default"},
            {"row": "New", "method": "new", "variant": {"jump": "a", "translate": "b"}},
        ],
        "columns": [
            {
                "column": "J",
                "task": "jump",
                "split": "test",
                "subset": "all",
                "metric": "exact_match",
                "unit": "percent",
            },
            {"column": "T", "task": "translate", "split": "test", "subset": "all", "metric": "bleu", "unit": "BLEU"},
            {
                "column": "C",
                "task": "cogs",
                "split": "test",
                "subset": "all",
                "metric": "exact_match",
                "unit": "percent",
            },
        ],
    }
)


def score(task, method, variant, seed, value, protocol="reduced", **more):
    row = {"task": task, "method": method, "variant": variant, "seed": seed, "split": "test", "subset": "all"}
    row |= {"metric": "exact_match", "value": value, "unit": "percent", "n": 10, "protocol": protocol}
    rest = ("intervention", "layer", "pooling", "rate", "intervention_seed", "item_set", "readout")
    return row | dict.fromkeys(rest) | more


def evidence(tmp_path, scores, rows="", analyses=None):
    published = tmp_path / "published.csv"
    published.write_text(HEADER + rows, encoding="utf-8")
    grouped = {}
    for row in scores:
        grouped.setdefault((row["task"], row["method"], row["variant"]), []).append(row)
    return Evidence("p", "small", read_published(published), grouped, analyses or {})


def by_key(cells):
    return {(cell.row, cell.column): cell for cell in cells}


def test_status_of_every_kind_of_cell(tmp_path):
    rows = (
        "d,Old,J,exact_match,1.2,1.2,percent,,,T9,\n"
        "d,New,J,exact_match,99.4±1.0,99.4,percent,1.0,5,T9,\n"
        "d,New,T,bleu,30.1,30.1,BLEU,,,T9,\n"
        "d,New,C,exact_match,5,5,percent,,,T9,\n"
    )
    scores = [score("jump", "plain", "default", seed, 40 + seed) for seed in (2, 1, 3)]
    cells = by_key(make_cells("d", DISPLAY, evidence(tmp_path, scores, rows)))
    assert cells["Old", "J"].status == "published only"
    assert cells["Plain", "J"].status == "measured"
    assert cells["Plain", "J"].seeds == {1: 41, 2: 42, 3: 43}
    assert cells["Plain", "J"].summary.mean == 42
    assert cells["Plain", "J"].published is None
    assert (cells["New", "J"].status, cells["New", "J"].note) == ("not run", "not run at small")
    assert cells["New", "J"].published.std == 1.0
    assert cells["New", "T"].status == "not run"
    assert cells["New", "C"].status == "published only"  # no variant for this task
    assert ("Old", "T") not in cells  # neither published nor to be measured
    assert ("Old", "C") not in cells


@pytest.mark.parametrize(
    ("protocols", "worst", "difference"),
    [
        (("paper", "paper"), "paper", pytest.approx(-9.4)),
        (("paper", "reduced"), "reduced", None),
        (("reduced", "stand_in"), "stand_in", None),
    ],
)
def test_worst_protocol_wins_and_only_paper_is_compared(tmp_path, protocols, worst, difference):
    scores = [score("jump", "new", "a", seed, 90, protocol) for seed, protocol in enumerate(protocols)]
    rows = "d,New,J,exact_match,99.4,99.4,percent,,,T9,\n"
    cell = by_key(make_cells("d", DISPLAY, evidence(tmp_path, scores, rows)))["New", "J"]
    assert (cell.protocol, cell.difference) == (worst, difference)


def test_no_difference_to_a_bound(tmp_path):
    rows = "d,New,J,exact_match,< 5%,,percent,,,T9,an upper bound\n"
    scores = [score("jump", "new", "a", 1, 4, "paper")]
    cell = by_key(make_cells("d", DISPLAY, evidence(tmp_path, scores, rows)))["New", "J"]
    assert cell.published.value is None
    assert cell.difference is None


def test_other_splits_subsets_and_interventions_stay_out(tmp_path):
    others = [
        score("jump", "new", "a", 1, 1, split="valid"),
        score("jump", "new", "a", 1, 2, subset="x"),
        score("jump", "new", "a", 1, 3, metric="bleu"),
    ]
    cells = make_cells("d", DISPLAY, evidence(tmp_path, [*others, score("jump", "new", "a", 1, 90)]))
    assert by_key(cells)["New", "J"].seeds == {1: 90}


def test_two_scores_of_one_seed_are_refused(tmp_path):
    scores = [score("jump", "new", "a", 1, 90), score("jump", "new", "a", 1, 80, layer=2)]
    with pytest.raises(UserError, match=r"d/New/J/exact_match: two scores of one seed; fix also .*layer"):
        make_cells("d", DISPLAY, evidence(tmp_path, scores))


def test_a_selection_that_finds_nothing_in_a_run_is_refused(tmp_path):
    scores = [score("jump", "new", "a", 1, 90, subset="typo")]
    with pytest.raises(UserError, match=r"displays.yaml: cell d/New/J/exact_match: no score has .*subset all"):
        make_cells("d", DISPLAY, evidence(tmp_path, scores))


def test_a_row_wins_over_its_column_and_may_read_an_analysis(tmp_path):
    display = TableDisplay.model_validate(
        {
            **DISPLAY.model_dump(exclude_unset=True),
            "rows": [
                {"row": "Accuracy", "method": "new", "variant": "a"},
                {
                    "row": "KL",
                    "method": "new",
                    "variant": "a",
                    "analysis": "maps",
                    "metric": "kl",
                    "unit": "nats",
                    "split": "valid",
                    "decimals": 4,
                },
            ],
            "columns": [DISPLAY.columns[0].model_dump(exclude_unset=True)],
        }
    )
    maps = [score("jump", "new", "a", 1, 0.25, metric="kl", split="valid")]
    found = evidence(tmp_path, [score("jump", "new", "a", 1, 90)], analyses={"maps": maps})
    cells = by_key(make_cells("d", display, found))
    assert cells["Accuracy", "J"].seeds == {1: 90}
    assert (cells["KL", "J"].metric, cells["KL", "J"].unit, cells["KL", "J"].decimals) == ("kl", "nats", 4)
    assert cells["KL", "J"].seeds == {1: 0.25}
    other = [maps[0] | {"metric": "other"}]
    none = make_cells("d", display, evidence(tmp_path, [score("jump", "new", "a", 1, 90)], analyses={"maps": other}))
    assert (by_key(none)["KL", "J"].status, by_key(none)["KL", "J"].note) == ("not run", "does not apply")
    empty = make_cells("d", display, evidence(tmp_path, [score("jump", "new", "a", 1, 90)], analyses={"maps": []}))
    assert (by_key(empty)["KL", "J"].status, by_key(empty)["KL", "J"].note) == ("not run", "not run at small")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("display,row\n", "published.csv:1: the columns must be display,row"),
        (HEADER + "d,r,c,m,1,one,percent,,,s,\n", "published.csv:2: could not convert .*one.*numbers or empty"),
        (HEADER + "d,r,c,m,1,1,percent,,5.5,s,\n", "published.csv:2: .*5.5.*numbers or empty"),
        (HEADER + "d,r,c,m,1,1,percent,,,s\n", "published.csv:2: not 11 columns"),
        (HEADER + "d,r,c,m,1,1,percent,,,s,one, two\n", "published.csv:2: not 11 columns"),
        (HEADER + "d,r,c,m,1,1,percent,,,s,\nd,r,c,m,2,2,percent,,,s,\n", "published.csv:3: the cell d/r/c/m stands"),
    ],
)
def test_broken_published_numbers_are_named_with_their_line(tmp_path, text, message):
    file = tmp_path / "published.csv"
    file.write_text(text)
    with pytest.raises(UserError, match=message):
        read_published(file)


def test_missing_published_numbers(tmp_path):
    with pytest.raises(UserError, match=r"nothing.csv does not exist; restore it"):
        read_published(tmp_path / "nothing.csv")


def test_keys_are_unique(tmp_path):
    cells = make_cells("d", DISPLAY, evidence(tmp_path, [score("jump", "new", "a", 1, 90)]))
    assert all(a.key != b.key for a, b in itertools.combinations(cells, 2))
