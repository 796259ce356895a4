"""The join of published numbers, displays and scores."""

import itertools
from dataclasses import replace

import pytest

from workflow_scripts.common.errors import UserError
from workflow_scripts.config.display_schema import Column, Row, TableDisplay
from workflow_scripts.evaluation.published import PUBLISHED_COLUMNS, read_published
from workflow_scripts.reporting.evidence.evidence import Evidence
from workflow_scripts.reporting.tables.cells import make_cells
from workflow_scripts.reporting.tables.layout import explain_table, format_reproduced
from workflow_scripts.reporting.tables.table import make_table_row

PLACE = {"split": "test", "subset": "all", "metric": "exact_match"}
ENTRY = {"kind": "table", "source": "Table 9", "title": "Made up", "group": "Main"}
ROWS = [{"row": "Old"}, {"row": "Plain", "method": "plain", "variant": "default"}]
ROWS.append({"row": "New", "method": "new", "variant": {"jump": "a", "translate": "b"}})
COLUMNS = [PLACE | {"column": name, "task": task, "unit": "percent"} for name, task in (("J", "jump"), ("C", "cogs"))]
COLUMNS.insert(1, PLACE | {"column": "T", "task": "translate", "unit": "BLEU", "metric": "bleu"})
DISPLAY = TableDisplay.model_validate(ENTRY | {"rows": ROWS, "columns": COLUMNS})


def score(task, method, variant, seed, value, protocol="reduced", **more):
    row = {"task": task, "method": method, "variant": variant, "seed": seed}
    row |= PLACE | {"value": value, "unit": "percent", "n": 10, "protocol": protocol}
    rest = ("intervention", "layer", "pooling", "rate", "intervention_seed", "item_set", "readout")
    return row | dict.fromkeys(rest) | more


def evidence(tmp_path, scores, rows="", analyses=None):
    published = tmp_path / "published.csv"
    published.write_text(",".join(PUBLISHED_COLUMNS) + "\n" + rows, encoding="utf-8")
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
    statuses = {place: cell.status for place, cell in cells.items() if place[0] != "Plain" or place[1] == "J"}
    expected = {("Old", "J"): "published only", ("Plain", "J"): "measured", ("New", "J"): "not run"}
    # For COGS there is no variant; other cells are neither published nor to be measured.
    assert statuses == expected | {("New", "T"): "not run", ("New", "C"): "published only"}
    plain, new = cells["Plain", "J"], cells["New", "J"]
    assert (plain.seeds, plain.summary.mean, plain.published) == ({1: 41, 2: 42, 3: 43}, 42, None)
    assert (new.note, new.published.std) == ("not run at small", 1.0)


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
    others = [score("jump", "new", "a", 1, 1, **{name: "x"}) for name in ("split", "subset", "metric", "intervention")]
    cells = make_cells("d", DISPLAY, evidence(tmp_path, [*others, score("jump", "new", "a", 1, 90)]))
    assert by_key(cells)["New", "J"].seeds == {1: 90}


def test_two_scores_of_one_seed_are_refused(tmp_path):
    scores = [score("jump", "new", "a", 1, 90), score("jump", "new", "a", 1, 80, layer=2)]
    with pytest.raises(UserError, match=r"d/New/J/exact_match: two scores of one seed; fix also .*layer"):
        make_cells("d", DISPLAY, evidence(tmp_path, scores))


def test_a_score_that_is_not_defined_has_a_reason(tmp_path):
    absent = PLACE | {"reason": "all predictions are equal", "seed": 1}
    others = [score("jump", "new", "a", 1, 90, subset="typo"), score("jump", "plain", "default", 2, 40)]
    # Of several rows of one seed it is left out once, and not where another row has the value.
    rows = [absent | {"readout": readout, "seed": seed} for seed in (1, 2) for readout in ("cont", "mix")]
    of_runs = {("jump", "new", "a"): [absent], ("jump", "plain", "default"): rows}
    made = replace(evidence(tmp_path, others), absent=of_runs)
    cells = by_key(make_cells("d", DISPLAY, made))
    assert cells["Plain", "J"].seeds == {2: 40}
    assert cells["Plain", "J"].note == "seeds without a value, left out: 1 (all predictions are equal)"
    assert (cells["New", "J"].status, cells["New", "J"].note) == ("undefined", "undefined: all predictions are equal")
    with pytest.raises(UserError, match="no score has"):
        make_cells("d", DISPLAY, replace(made, absent={("jump", "new", "a"): [absent | {"subset": "some"}]}))


def test_a_selection_that_finds_nothing_in_a_run_is_refused(tmp_path):
    scores = [score("jump", "new", "a", 1, 90, subset="typo")]
    with pytest.raises(UserError, match=r"displays.yaml: cell d/New/J/exact_match: no score has .*subset all"):
        make_cells("d", DISPLAY, evidence(tmp_path, scores))


def test_a_row_wins_over_its_column_and_may_read_an_analysis(tmp_path):
    new = {"method": "new", "variant": "a"}
    kl = {"analysis": "maps", "metric": "kl", "unit": "nats", "split": "valid", "decimals": 4}
    rows = [Row(row="Accuracy", **new), Row(row="KL", **new, **kl)]
    display = DISPLAY.model_copy(update={"rows": rows, "columns": DISPLAY.columns[:1]})
    maps = [score("jump", "new", "a", 1, 0.25, metric="kl", split="valid")]
    found = evidence(tmp_path, [score("jump", "new", "a", 1, 90)], analyses={"maps": maps})
    cells = by_key(make_cells("d", display, found))
    assert cells["Accuracy", "J"].seeds == {1: 90}
    assert (cells["KL", "J"].metric, cells["KL", "J"].unit, cells["KL", "J"].decimals) == ("kl", "nats", 4)
    assert cells["KL", "J"].seeds == {1: 0.25}
    for rows, note in (([maps[0] | {"metric": "other"}], "does not apply"), ([], "not run at small")):
        found = evidence(tmp_path, [score("jump", "new", "a", 1, 90)], analyses={"maps": rows})
        empty = by_key(make_cells("d", display, found))["KL", "J"]
        assert (empty.status, empty.note) == ("not run", note)


def test_keys_are_unique(tmp_path):
    cells = make_cells("d", DISPLAY, evidence(tmp_path, [score("jump", "new", "a", 1, 90)]))
    assert all(a.key != b.key for a, b in itertools.combinations(cells, 2))


def intervened(seed, value, **more):
    return score("jump", "new", "a", seed, value, intervention="cap", **more)


def table(**selection):
    row = {"row": "r", "method": "new", "variant": "a"}
    column = {"column": "c", "task": "jump", "unit": "points"} | PLACE | selection
    return TableDisplay.model_validate(ENTRY | {"rows": [row], "columns": [column]})


def only(cells):
    (cell,) = cells
    return cell


def test_scores_under_an_intervention_are_shown_where_it_is_asked_for(tmp_path):
    found = evidence(tmp_path, [score("jump", "new", "a", 1, 90), intervened(1, 40, layer=1)])
    assert only(make_cells("d", table(), found)).seeds == {1: 90}
    assert only(make_cells("d", table(intervention="cap"), found)).seeds == {1: 40}
    nothing = only(make_cells("d", table(intervention="synonyms"), found))
    assert (nothing.status, nothing.note) == ("not run", "not run at small")
    other_layer = only(make_cells("d", table(intervention="cap", layer=7), found))
    assert (other_layer.status, other_layer.note) == ("not run", "does not apply")


def test_a_share_of_right_answers_is_undefined_where_there_are_none(tmp_path):
    synonyms = {"intervention": "synonyms", "rate": 0.25}
    none = [score("jump", "new", "a", 1, 0), intervened(1, 0, item_set="all")]
    none.append(score("jump", "new", "a", 1, 0, item_set="all", **synonyms))
    for where in ({"intervention": "cap"}, synonyms):
        cell = only(make_cells("d", table(item_set="own_correct", **where), evidence(tmp_path, none)))
        assert (cell.status, cell.note) == ("undefined", "undefined: no right answers")
        assert format_reproduced(cell) == "undefined: no right answers"
    # Another rate was not measured at all.
    other = table(item_set="own_correct", intervention="synonyms", rate=0.4)
    cell = only(make_cells("d", other, evidence(tmp_path, none)))
    assert (cell.status, cell.note) == ("not run", "not run at small")


@pytest.mark.parametrize(
    ("size", "expected"), [(0, ("undefined", "undefined: no right answers")), (3, ("not run", "not run at small"))]
)
def test_a_share_of_common_answers_is_undefined_where_there_are_none(tmp_path, size, expected):
    rows = [{**score("jump", "new", "a", 1, size), "metric": "items", "n": size, "item_set": "common_correct"}]
    shown = table(item_set="common_correct", intervention="synonyms", rate=0.25, analysis="sets")
    cell = only(make_cells("d", shown, evidence(tmp_path, [], analyses={"sets": rows})))
    assert (cell.status, cell.note) == expected


def test_repetitions_of_an_intervention_are_averaged_by_seed(tmp_path):
    rows = [
        intervened(seed, 10 * seed + draw + shift, intervention_seed=draw, pooling=pooling, layer=1)
        for seed in (1, 2)
        for draw in (1, 2, 6)
        for pooling, shift in (("max", 0), ("sum", 4))
    ]
    found = evidence(tmp_path, rows)
    assert only(make_cells("d", table(intervention="cap"), found)).seeds == {1: 15, 2: 25}
    assert only(make_cells("d", table(intervention="cap", pooling="max"), found)).seeds == {1: 13, 2: 23}
    rows += [row | {"layer": 2} for row in rows]
    with pytest.raises(UserError, match="two scores of one seed; fix also layer"):
        make_cells("d", table(intervention="cap"), evidence(tmp_path, rows))


# Blocks 1, 8, 17, 26 and 35 are those of the official scripts for 36 blocks: a quarter of 35 is 8.75.
def test_a_depth_is_the_nearest_measured_layer(tmp_path):
    nearest = {"25%": ((1, 8, 17, 26, 35), 8), "100%": ((1, 3), 3), "0%": ((1, 3), 1), "50%": ((1, 2, 3), 1)}
    for depth, (layers, layer) in [*nearest.items(), ("50%", ((1, 2, 4), 2))]:
        found = evidence(tmp_path, [intervened(1, number, layer=number) for number in layers])
        assert only(make_cells("d", table(intervention="cap", layer=depth), found)).seeds == {1: layer}


def test_a_table_says_which_blocks_its_depths_are(tmp_path):
    found = evidence(tmp_path, [intervened(1, 10 * number, layer=number) for number in (1, 2, 3)])
    shown = table(intervention="cap")
    columns = [(name, {"layer": layer}) for name, layer in (("first", 1), ("25%", "25%"), ("last", "100%"))]
    columns = [shown.columns[0].model_copy(update={"column": name} | more) for name, more in columns]
    for chosen, alike in ((columns, True), (columns[1:], False)):
        chosen = [Column.model_validate(column.model_dump(exclude_unset=True)) for column in chosen]
        display = shown.model_copy(update={"columns": chosen})
        cells = make_cells("d", display, found)
        said = " ".join(explain_table(display, cells, {}, "small"))
        assert "25%: 1; last: 3." in said and ("the same numbers" in said) == alike
        assert make_table_row(cells[-1], None, None)["note"] == "block 3"
    assert "block" not in " ".join(explain_table(shown, make_cells("d", table(), found), {}, "small"))


def test_a_depth_in_words_is_refused(tmp_path):
    found = evidence(tmp_path, [intervened(1, 5, layer=1)])
    with pytest.raises(UserError, match="layer 'first' is neither a number of a block nor a depth like 25%"):
        make_cells("d", table(intervention="cap", layer="first"), found)


def test_a_gain_is_formed_seed_by_seed(tmp_path):
    ours = [score("jump", "new", "a", seed, 30 + seed) for seed in (1, 2, 3)]
    others = [score("jump", "new", "b", seed, 20, protocol="stand_in") for seed in (2, 3, 4)]
    cell = only(make_cells("d", table(over="b"), evidence(tmp_path, ours + others)))
    assert cell.seeds == {2: 12, 3: 13} and cell.protocol == "stand_in"
    cell = only(make_cells("d", table(over="b", relative=True), evidence(tmp_path, ours + others)))
    assert cell.seeds == pytest.approx({2: 60, 3: 65})
    # One seed of the other: a model that is not trained again.
    cell = only(make_cells("d", table(over="b"), evidence(tmp_path, [*ours, score("jump", "new", "b", 9, 30)])))
    assert cell.seeds == {1: 1, 2: 2, 3: 3}


def test_a_gain_over_several_seeds_of_which_one_has_the_score_is_of_that_seed(tmp_path):
    place = {"intervention": "synonyms", "rate": 0.25}
    ours = [score("jump", "new", "a", seed, 30 + seed, item_set="own_correct", **place) for seed in (1, 2, 3)]
    others = [score("jump", "new", "b", seed, 1, item_set="all", **place) for seed in (1, 2, 3)]
    others.append(score("jump", "new", "b", 2, 20, item_set="own_correct", **place))  # the others had nothing right
    found = evidence(tmp_path, ours + others)
    assert only(make_cells("d", table(over="b", item_set="own_correct", **place), found)).seeds == {2: 12}


def test_a_gain_over_nothing_is_none(tmp_path):
    ours, none = [score("jump", "new", "a", 1, 30)], [score("jump", "new", "b", 1, 0)]
    cell = only(make_cells("d", table(over="b"), evidence(tmp_path, ours)))
    assert (cell.status, cell.note) == ("not run", "not run at small")
    cell = only(make_cells("d", table(over="b", relative=True), evidence(tmp_path, ours + none)))
    assert (cell.status, cell.note) == ("undefined", "undefined: 0 for b")


@pytest.mark.parametrize("value", [0, 20])
def test_a_gain_over_other_seeds_is_none_whatever_their_score(tmp_path, value):
    scores = [score("jump", "new", "a", 1, 30), *(score("jump", "new", "b", seed, value) for seed in (2, 3))]
    for relative in (False, True):
        cell = only(make_cells("d", table(over="b", relative=relative), evidence(tmp_path, scores)))
        assert (cell.status, cell.note) == ("undefined", "undefined: shares no seed with b")


def test_a_gain_over_a_share_of_no_right_answers_is_undefined(tmp_path):
    place = {"intervention": "synonyms", "rate": 0.25}
    ours = [score("jump", "new", "a", 1, 30, item_set="own_correct", **place)]
    none = [score("jump", "new", "b", 1, 0, item_set="all", **place)]
    shown = table(over="b", item_set="own_correct", relative=True, **place)
    cell = only(make_cells("d", shown, evidence(tmp_path, ours + none)))
    assert (cell.status, cell.note) == ("undefined", "undefined: no right answers of b")
    assert format_reproduced(cell) == "undefined: no right answers of b"
    elsewhere = [row | {"rate": 0.4} for row in none]
    cell = only(make_cells("d", shown, evidence(tmp_path, ours + elsewhere)))
    assert (cell.status, cell.note) == ("not run", "not run at small")


def test_a_gain_over_runs_that_start_from_other_weights_is_refused(tmp_path):
    scores = [score("jump", "new", variant, 1, 30) for variant in "ab"]
    for right, refused in (("other", True), ("parent", False)):
        weights = {("jump", "new", "a"): "parent", ("jump", "new", "b"): right}
        found = replace(evidence(tmp_path, scores), weights=weights)
        if refused:
            with pytest.raises(UserError, match="jump/new/a and jump/new/b start from different weights, so no seeds"):
                make_cells("d", table(over="b"), found)
        else:
            assert only(make_cells("d", table(over="b"), found)).weights == "parent"


@pytest.mark.parametrize("protocol", ["paper", "reduced"])
def test_a_cell_of_a_whole_analysis_has_no_seeds(tmp_path, protocol):
    rows = [
        score(task, None, None, None, value, protocol) | {"metric": "m", "unit": "runs"}
        for task, value in (("idm", 4.0), ("sst", 9.0))
    ]
    found = evidence(tmp_path, [], analyses={"audit": rows})
    display = table(analysis="audit", metric="m").model_copy(update={"rows": [Row(row="r", task="idm")]})
    cell = only(make_cells("d", display, found))
    assert (cell.status, cell.computed, cell.seeds, cell.difference) == ("computed", 4.0, {}, None)
    said = " ".join(explain_table(display, [cell], {}, "small"))
    assert ("Protocol reduced" in said) == (protocol == "reduced")
    assert "Protocol paper" not in said
    # What it looked at without a number does not apply; what it had no runs of is not run.
    for row, note in ((Row(row="r", task="cogs"), "does not apply"), (Row(row="r", subset="s"), "not run at small")):
        cell = only(make_cells("d", display.model_copy(update={"rows": [row]}), found))
        assert (cell.status, cell.note) == ("not run", note)


def test_a_cell_without_a_readout_means_the_scores_without_one_where_there_are_such(tmp_path):
    scores = [score("jump", "new", "a", 1, 90), score("jump", "new", "a", 1, 30, readout="last")]
    cells = by_key(make_cells("d", DISPLAY, evidence(tmp_path, scores)))
    assert cells["New", "J"].seeds == {1: 90}
    column = DISPLAY.columns[0].model_dump(exclude_unset=True) | {"column": "J last", "readout": "last"}
    display = DISPLAY.model_copy(update={"columns": [Column.model_validate(column)]})
    assert by_key(make_cells("d", display, evidence(tmp_path, scores)))["New", "J last"].seeds == {1: 30}
    # Where every score has a readout, the only one is meant.
    cells = by_key(make_cells("d", DISPLAY, evidence(tmp_path, scores[1:])))
    assert cells["New", "J"].seeds == {1: 30}
