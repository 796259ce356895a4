"""The join of published numbers, displays and scores."""

from dataclasses import replace
from pathlib import Path

import pytest

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.run_names import VariantKey
from workflow_scripts.config.display_schema import Analysis, Column, Row, TableDisplay
from workflow_scripts.evaluation.published_numbers import Published
from workflow_scripts.evaluation.scores import Score
from workflow_scripts.provenance.unfinished import Cause, Unfinished
from workflow_scripts.reporting.evidence.evidence import Evidence
from workflow_scripts.reporting.evidence.selected_scores import AbsentScore
from workflow_scripts.reporting.tables.cells import make_cells
from workflow_scripts.reporting.tables.layout import explain_table, format_reproduced
from workflow_scripts.reporting.tables.table import make_table_row

PLACE = {"split": "test", "subset": "all", "metric": "exact_match"}
ENTRY = {"kind": "table", "source": "Table 9", "title": "Made up", "group": "Main"}
ROWS = [{"row": "Old"}, {"row": "Plain", "method": "plain", "variant": "default"}]
ROWS.append({"row": "New", "method": "new", "variant": {"jump": "a", "translate": "b"}})
COLUMNS = [
    PLACE | {"column": name, "task": task, "unit": "percent"}
    for name, task in (("J", "jump"), ("C", "cogs"))
]
COLUMNS.insert(1, PLACE | {"column": "T", "task": "translate", "unit": "BLEU", "metric": "bleu"})
DISPLAY = TableDisplay.model_validate(ENTRY | {"rows": ROWS, "columns": COLUMNS})
CAP, SYNONYMS = {"intervention": "cap"}, {"intervention": "synonyms", "rate": 0.25}


def score(task, method, variant, seed, value, protocol="reduced", **more):
    row = {"task": task, "method": method, "variant": variant, "seed": seed}
    row |= PLACE | {"value": value, "unit": "percent", "n": 10, "protocol": protocol}
    rest = ("intervention", "layer", "pooling", "rate", "intervention_seed", "item_set", "readout")
    return Score(**row | dict.fromkeys(rest) | more)


def new(seed, value, *protocol, variant="a", **more):
    return score("jump", "new", variant, seed, value, *protocol, **more)


def evidence(scores, printed=None, analyses=None):
    """What cells are made of: `printed` has the number of each row and column."""
    grouped, published = {}, {}
    for row in scores:
        grouped.setdefault((row.task, row.method, row.variant), []).append(row)
    for (row, column), (text, value, std) in (printed or {}).items():
        metric, unit = ("bleu", "BLEU") if column == "T" else ("exact_match", "percent")
        published["d", row, column, metric] = Published(text, value, std, None, unit, "T9", "")
    return Evidence("p", "small", published, grouped, analyses or {})


def changed(display, **fields):
    """The display with other rows or columns."""
    return TableDisplay(
        **{name: getattr(display, name) for name in display.model_fields_set} | fields
    )


def cells_of(found, display=DISPLAY):
    return {(cell.row, cell.column): cell for cell in make_cells("d", display, found)}


def test_status_of_every_kind_of_cell():
    printed = {("Old", "J"): ("1.2", 1.2, None), ("New", "J"): ("99.4±1.0", 99.4, 1.0)}
    printed |= {("New", "T"): ("30.1", 30.1, None), ("New", "C"): ("5", 5, None)}
    scores = [score("jump", "plain", "default", seed, 40 + seed) for seed in (2, 1, 3)]
    cells = cells_of(evidence(scores, printed))
    statuses = {
        place: cell.status
        for place, cell in cells.items()
        if place[0] != "Plain" or place[1] == "J"
    }
    expected = {("Old", "J"): "published only", ("Plain", "J"): "measured", ("New", "J"): "not run"}
    # For COGS there is no variant; other cells are neither published nor to be measured.
    assert statuses == expected | {("New", "T"): "not run", ("New", "C"): "published only"}
    plain, new = cells["Plain", "J"], cells["New", "J"]
    assert (plain.seeds, plain.summary.mean, plain.published) == ({1: 41, 2: 42, 3: 43}, 42, None)
    assert (new.note, new.published.std) == ("not run at small", 1.0)


def test_a_metric_that_no_task_has_is_of_the_paper_alone():
    """LRF's paper prints a BLEU without saying how it is computed: that is not `not run`."""
    unsaid = PLACE | {"column": "U", "metric": "exact_match", "unit": "percent"}
    display = changed(DISPLAY, columns=[*COLUMNS, unsaid])
    cells = cells_of(evidence([], {("New", "U"): ("59.5", 59.5, None)}), display)
    assert {place: cell.status for place, cell in cells.items() if place[1] == "U"} == {
        ("New", "U"): "published only"
    }


@pytest.mark.parametrize(
    ("protocols", "worst", "difference"),
    [
        (("paper", "paper"), "paper", pytest.approx(-9.4)),
        (("paper", "reduced"), "reduced", None),
        (("reduced", "stand_in"), "stand_in", None),
    ],
)
def test_worst_protocol_wins_and_only_paper_is_compared(protocols, worst, difference):
    scores = [new(seed, 90, protocol) for seed, protocol in enumerate(protocols)]
    cell = cells_of(evidence(scores, {("New", "J"): ("99.4", 99.4, None)}))["New", "J"]
    assert (cell.protocol, cell.difference) == (worst, difference)


def test_no_difference_to_a_bound():
    found = evidence([new(1, 4, "paper")], {("New", "J"): ("< 5%", None, None)})
    assert cells_of(found)["New", "J"].difference is None


def test_other_splits_subsets_and_interventions_stay_out():
    others = [new(1, 1, **{name: "x"}) for name in ("split", "subset", "metric", "intervention")]
    found = evidence([*others, new(1, 90)])
    assert cells_of(found)["New", "J"].seeds == {1: 90}


def test_two_scores_of_one_seed_are_refused():
    scores = [new(1, 90), new(1, 80, layer=2)]
    with pytest.raises(
        UserError, match=r"d/New/J/exact_match: two scores of one seed; fix also .*layer"
    ):
        make_cells("d", DISPLAY, evidence(scores))


def test_a_score_that_is_not_defined_has_a_reason():
    reason = "all predictions are equal"
    absent = AbsentScore(1, reason, PLACE)
    others = [new(1, 90, subset="typo"), score("jump", "plain", "default", 2, 40)]
    # Of several rows of one seed it is left out once, and not where another row has the value.
    rows = [
        AbsentScore(seed, reason, PLACE | {"readout": readout})
        for seed in (1, 2)
        for readout in ("cont", "mix")
    ]
    of_runs = {("jump", "new", "a"): [absent], ("jump", "plain", "default"): rows}
    made = replace(evidence(others), absent=of_runs)
    cells = cells_of(made)
    assert cells["Plain", "J"].seeds == {2: 40}
    assert (
        cells["Plain", "J"].note == "seeds without a value, left out: 1 (all predictions are equal)"
    )
    assert (cells["New", "J"].status, cells["New", "J"].note) == (
        "undefined",
        "undefined: all predictions are equal",
    )
    with pytest.raises(UserError, match="no score has"):
        elsewhere = AbsentScore(1, reason, PLACE | {"subset": "some"})
        make_cells("d", DISPLAY, replace(made, absent={("jump", "new", "a"): [elsewhere]}))


def test_a_selection_that_finds_nothing_in_a_run_is_refused():
    scores = [new(1, 90, subset="typo")]
    with pytest.raises(
        UserError, match=r"displays.yaml: cell d/New/J/exact_match: no score has .*subset all"
    ):
        make_cells("d", DISPLAY, evidence(scores))


def test_a_metric_that_no_score_of_a_variant_has_does_not_apply():
    """As the accuracy on next sentences of a model that was pre-trained without them."""
    (cell,) = [
        cell
        for cell in make_cells("d", DISPLAY, evidence([new(1, 90, metric="bleu")]))
        if (cell.row, cell.column) == ("New", "J")
    ]
    assert (cell.status, cell.note) == ("not run", "does not apply")


def test_a_row_wins_over_its_column_and_may_read_an_analysis():
    of = {"method": "new", "variant": "a"}
    kl = {"analysis": "maps", "metric": "kl", "unit": "nats", "split": "valid", "decimals": 4}
    rows = [Row(row="Accuracy", **of), Row(row="KL", **of, **kl)]
    display = changed(DISPLAY, rows=rows, columns=DISPLAY.columns[:1])
    maps = [new(1, 0.25, metric="kl", split="valid")]
    found = evidence([new(1, 90)], analyses={"maps": maps})
    cells = cells_of(found, display)
    assert cells["Accuracy", "J"].seeds == {1: 90}
    assert (cells["KL", "J"].metric, cells["KL", "J"].unit, cells["KL", "J"].decimals) == (
        "kl",
        "nats",
        4,
    )
    assert cells["KL", "J"].seeds == {1: 0.25}
    for rows, note in (
        ([maps[0]._replace(metric="other")], "does not apply"),
        ([], "not run at small"),
    ):
        found = evidence([new(1, 90)], analyses={"maps": rows})
        empty = cells_of(found, display)["KL", "J"]
        assert (empty.status, empty.note) == ("not run", note)


def table(**selection):
    row = {"row": "r", "method": "new", "variant": "a"}
    column = {"column": "c", "task": "jump", "unit": "points"} | PLACE | selection
    return TableDisplay.model_validate(ENTRY | {"rows": [row], "columns": [column]})


def shown(found, **selection):
    """The only cell of a table with this selection."""
    (cell,) = make_cells("d", table(**selection), found)
    return cell


def test_scores_under_an_intervention_are_shown_where_it_is_asked_for():
    found = evidence([new(1, 90), new(1, 40, layer=1, **CAP)])
    assert shown(found).seeds == {1: 90}
    assert shown(found, intervention="cap").seeds == {1: 40}


OWN, OVER, NOT_RUN = {"item_set": "own_correct"}, {"over": "b"}, ("not run", "not run at small")
POOLED = [new(1, 90), new(1, 40, layer=1, **CAP)]
NONE_RIGHT = [new(1, 0), *(new(1, 0, item_set="all", **where) for where in (CAP, SYNONYMS))]
OVER_NONE = [new(1, 30, **OWN, **SYNONYMS), new(1, 0, variant="b", item_set="all", **SYNONYMS)]
OTHER_SEEDS = [
    [new(1, 30), *(new(seed, value, variant="b") for seed in (2, 3))] for value in (0, 20)
]


@pytest.mark.parametrize(
    ("scores", "selection", "expected"),
    [
        (POOLED, {"intervention": "synonyms"}, NOT_RUN),
        (POOLED, CAP | {"layer": 7}, ("not run", "does not apply")),
        (NONE_RIGHT, OWN | CAP, ("undefined", "undefined: no right answers")),
        (NONE_RIGHT, OWN | SYNONYMS, ("undefined", "undefined: no right answers")),
        (NONE_RIGHT, OWN | SYNONYMS | {"rate": 0.4}, NOT_RUN),
        ([new(1, 30)], OVER, NOT_RUN),
        (
            [new(1, 30), new(1, 0, variant="b")],
            OVER | {"relative": True},
            ("undefined", "undefined: 0 for b"),
        ),
        (
            OTHER_SEEDS[0],
            OVER | {"relative": True},
            ("undefined", "undefined: shares no seed with b"),
        ),
        (OTHER_SEEDS[1], OVER, ("undefined", "undefined: shares no seed with b")),
        (OVER_NONE, OVER | OWN | SYNONYMS, ("undefined", "undefined: no right answers of b")),
        ([OVER_NONE[0], OVER_NONE[1]._replace(rate=0.4)], OVER | OWN | SYNONYMS, NOT_RUN),
    ],
)
def test_a_cell_without_a_value_says_why(scores, selection, expected):
    cell = shown(evidence(scores), **selection)
    assert (cell.status, cell.note) == expected and format_reproduced(cell) == cell.note


@pytest.mark.parametrize(
    ("size", "expected"),
    [(0, ("undefined", "undefined: no right answers")), (3, ("not run", "not run at small"))],
)
def test_a_share_of_common_answers_is_undefined_where_there_are_none(size, expected):
    rows = [new(1, size, metric="items", n=size, item_set="common_correct")]
    where = {
        "item_set": "common_correct",
        "intervention": "synonyms",
        "rate": 0.25,
        "analysis": "sets",
    }
    cell = shown(evidence([], analyses={"sets": rows}), **where)
    assert (cell.status, cell.note) == expected


def test_repetitions_of_an_intervention_are_averaged_by_seed():
    rows = [
        new(seed, 10 * seed + draw + shift, intervention_seed=draw, pooling=pooling, layer=1, **CAP)
        for seed in (1, 2)
        for draw in (1, 2, 6)
        for pooling, shift in (("max", 0), ("sum", 4))
    ]
    found = evidence(rows)
    assert shown(found, intervention="cap").seeds == {1: 15, 2: 25}
    assert shown(found, intervention="cap", pooling="max").seeds == {1: 13, 2: 23}
    rows += [row._replace(layer=2) for row in rows]
    with pytest.raises(UserError, match="two scores of one seed; fix also layer"):
        make_cells("d", table(intervention="cap"), evidence(rows))


# Blocks 1, 8, 17, 26 and 35 are those of the official scripts for 36 blocks: a quarter of 35 is
# 8.75.
def test_a_depth_is_the_nearest_measured_layer():
    nearest = {
        "25%": ((1, 8, 17, 26, 35), 8),
        "100%": ((1, 3), 3),
        "0%": ((1, 3), 1),
        "50%": ((1, 2, 3), 1),
    }
    for depth, (layers, layer) in [*nearest.items(), ("50%", ((1, 2, 4), 2))]:
        found = evidence([new(1, number, layer=number, **CAP) for number in layers])
        assert shown(found, intervention="cap", layer=depth).seeds == {1: layer}


def test_a_table_says_which_blocks_its_depths_are():
    found = evidence([new(1, 10 * number, layer=number, **CAP) for number in (1, 2, 3)])
    whole = table(intervention="cap")
    columns = [
        (name, {"layer": layer}) for name, layer in (("first", 1), ("25%", "25%"), ("last", "100%"))
    ]
    columns = [
        whole.columns[0].model_copy(update={"column": name} | more) for name, more in columns
    ]
    for chosen, alike in ((columns, True), (columns[1:], False)):
        chosen = [Column.model_validate(column.model_dump(exclude_unset=True)) for column in chosen]
        display = changed(whole, columns=chosen)
        cells = make_cells("d", display, found)
        said = " ".join(explain_table(display, cells, {}, "small"))
        assert "25%: 1; last: 3." in said and ("the same numbers" in said) == alike
        assert make_table_row(cells[-1], None, None).note == "block 3"
    assert "block" not in " ".join(
        explain_table(whole, make_cells("d", table(), found), {}, "small")
    )


def test_a_depth_in_words_is_refused():
    found = evidence([new(1, 5, layer=1, **CAP)])
    with pytest.raises(
        UserError, match="layer 'first' is neither a number of a block nor a depth like 25%"
    ):
        make_cells("d", table(intervention="cap", layer="first"), found)


def test_a_gain_is_formed_seed_by_seed():
    ours = [new(seed, 30 + seed) for seed in (1, 2, 3)]
    others = [new(seed, 20, protocol="stand_in", variant="b") for seed in (2, 3, 4)]
    cell = shown(evidence(ours + others), over="b")
    assert cell.seeds == {2: 12, 3: 13} and cell.protocol == "stand_in"
    cell = shown(evidence(ours + others), over="b", relative=True)
    assert cell.seeds == pytest.approx({2: 60, 3: 65})
    # One model that is not trained: all seeds are compared with it.
    cell = shown(evidence([*ours, new(9, 30, variant="b@start")]), over="b@start")
    assert cell.seeds == {1: 1, 2: 2, 3: 3}
    # One seed of a trained one: the others are not finished.
    cell = shown(evidence([*ours, new(1, 30, variant="b")]), over="b")
    assert cell.seeds == {1: 1}


def test_a_gain_over_several_seeds_of_which_one_has_the_score_is_of_that_seed():
    ours = [new(seed, 30 + seed, **OWN, **SYNONYMS) for seed in (1, 2, 3)]
    others = [new(seed, 1, item_set="all", **SYNONYMS, variant="b") for seed in (1, 2, 3)]
    others.append(new(2, 20, **OWN, **SYNONYMS, variant="b"))  # the others had nothing right
    assert shown(evidence(ours + others), **OVER, **OWN, **SYNONYMS).seeds == {2: 12}


def test_a_gain_over_runs_that_start_from_other_weights_is_refused():
    scores = [new(1, 30, variant=variant) for variant in "ab"]
    for right, refused in (("other", True), ("parent", False)):
        weights = {("jump", "new", "a"): "parent", ("jump", "new", "b"): right}
        found = replace(evidence(scores), weights=weights)
        if refused:
            with pytest.raises(
                UserError,
                match="jump/new/a and jump/new/b start from different weights, so no seeds",
            ):
                make_cells("d", table(over="b"), found)
        else:
            assert shown(found, over="b").weights == "parent"


@pytest.mark.parametrize("protocol", ["paper", "reduced"])
def test_a_cell_of_a_whole_analysis_has_no_seeds(protocol):
    rows = [
        score(task, None, None, None, value, protocol, metric="m", unit="runs")
        for task, value in (("idm", 4.0), ("sst", 9.0))
    ]
    found = evidence([], analyses={"audit": rows})
    display = changed(table(analysis="audit", metric="m"), rows=[Row(row="r", task="idm")])
    (cell,) = make_cells("d", display, found)
    assert (cell.status, cell.computed, cell.seeds, cell.difference) == ("computed", 4.0, {}, None)
    said = " ".join(explain_table(display, [cell], {}, "small"))
    assert ("Protocol reduced" in said) == (protocol == "reduced")
    assert "Protocol paper" not in said
    # What it looked at without a number does not apply; what it had no runs of is not run.
    for row, note in (
        (Row(row="r", task="cogs"), "does not apply"),
        (Row(row="r", subset="s"), "not run at small"),
    ):
        (cell,) = make_cells("d", changed(display, rows=[row]), found)
        assert (cell.status, cell.note) == ("not run", note)


def test_a_cell_without_a_readout_means_the_scores_without_one_where_there_are_such():
    scores = [new(1, 90), new(1, 30, readout="last")]
    cells = cells_of(evidence(scores))
    assert cells["New", "J"].seeds == {1: 90}
    column = DISPLAY.columns[0].model_dump(exclude_unset=True) | {
        "column": "J last",
        "readout": "last",
    }
    display = changed(DISPLAY, columns=[Column.model_validate(column)])
    assert cells_of(evidence(scores), display)["New", "J last"].seeds == {1: 30}
    # Where every score has a readout, the only one is meant.
    cells = cells_of(evidence(scores[1:]))
    assert cells["New", "J"].seeds == {1: 30}


FAILED = Cause(word="failed", sentence="train jump/new/a/seed-2 failed")


def unfinished(variant, seed, folder="eval"):
    task, method, name = variant
    return {Path(f"runs/{task}/{method}/{name}/seed-{seed}/{folder}/scores.csv"): FAILED}


def test_runs_that_are_not_finished_are_named_with_their_cause():
    some = replace(
        evidence([new(1, 50.0)]), unfinished=Unfinished(unfinished(("jump", "new", "a"), 2))
    )
    cell = cells_of(some)["New", "J"]
    assert (cell.status, cell.seeds, cell.note) == ("measured", {1: 50.0}, "1 seed not run: failed")
    assert format_reproduced(cell) == "50.00"

    none = replace(evidence([]), unfinished=Unfinished(unfinished(("jump", "new", "a"), 2)))
    cells = cells_of(none)
    cell = cells["New", "J"]
    assert (cell.status, format_reproduced(cell)) == ("not run", "not run: failed")
    assert cells["Plain", "J"].note == "not run at small"
    sentences = explain_table(DISPLAY, list(cells.values()), {}, "small")
    assert "Not run, because train jump/new/a/seed-2 failed: New." in sentences


def test_an_unfinished_intervention_leaves_the_scores_without_it():
    columns = [COLUMNS[0], COLUMNS[0] | CAP | {"column": "J, CAP"}]
    display = changed(DISPLAY, columns=[Column.model_validate(column) for column in columns])
    causes = unfinished(("jump", "new", "a"), 1, "interventions")
    cells = cells_of(replace(evidence([new(1, 50.0)]), unfinished=Unfinished(causes)), display)
    assert (cells["New", "J"].status, cells["New", "J"].note) == ("measured", "")
    assert cells["New", "J, CAP"].note == "not run: failed"


def test_a_gain_over_a_variant_that_is_not_finished():
    rows = [Row.model_validate(ROWS[2] | {"over": "b", "variant": "a"})]
    display = changed(DISPLAY, rows=rows, columns=[Column.model_validate(COLUMNS[0])])
    causes = unfinished(("jump", "new", "b"), 1)
    found = replace(evidence([new(1, 50.0)]), unfinished=Unfinished(causes))
    assert cells_of(found, display)["New", "J"].note == "not run: failed"


def test_an_analysis_that_is_not_finished():
    column = Column.model_validate(
        {"column": "A", "analysis": "made", "metric": "share", "unit": "percent"}
    )
    display = changed(DISPLAY, rows=[Row.model_validate({"row": "all"})], columns=[column])
    causes = {Path("analyses/p/made/analysis.json"): FAILED}
    cells = cells_of(replace(evidence([]), unfinished=Unfinished(causes)), display)
    assert cells["all", "A"].note == "not run: failed"


def test_what_is_withheld_of_a_variant_is_withheld_alone():
    """Scores under interventions, and what an analysis computes of all, may be later than others."""
    key = VariantKey("jump", "new", "a")
    reason = "withheld: 5 of 6 planned seeds run"
    audit = Analysis.model_validate(
        {
            "module": "audit",
            "runs": [
                {"method": "new", "variant": "a", "task": "jump", "intervention": "cap"},
                {"method": "new", "variant": "b", "task": "jump"},
            ],
        }
    )
    number = score("jump", None, None, None, 7.0, metric="m")
    found = replace(
        evidence([new(1, 90), new(1, 40, layer=1, **CAP)], analyses={"audit": [number]}),
        analysis_entries={"audit": audit},
        withheld_interventions={key: reason},
    )
    assert shown(found).seeds == {1: 90}
    hidden = shown(found, intervention="cap")
    assert (hidden.status, hidden.note, hidden.seeds) == ("withheld", reason, {1: 40})
    display = changed(table(analysis="audit", metric="m"), rows=[Row(row="r", task="jump")])
    (computed,) = make_cells("d", display, found)
    assert (computed.status, computed.note, computed.computed) == ("withheld", reason, None)
    open_cells = make_cells("d", display, replace(found, withheld_interventions={}))
    assert [cell.computed for cell in open_cells] == [7.0]
    dropped = found.drop_withheld()
    assert [row.intervention for row in dropped.scores[key]] == [None]
    assert dropped.analyses == {"audit": []}
