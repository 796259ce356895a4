import numpy as np
import pandas
import pytest
from matplotlib.patches import Rectangle

from tests.reporting.figures.drawn import Results, draw, numbers, overlapping, texts
from workflow_scripts.common.errors import UserError
from workflow_scripts.evaluation.published_numbers import Key
from workflow_scripts.evaluation.scores import write_scores
from workflow_scripts.reporting.evidence.selected_scores import load_scores
from workflow_scripts.reporting.figures import (
    attention_maps,
    embedding_maps,
    learning_curves,
    neighbours,
    sentence_pairs,
)

JUMP = "scan-jump-x2/sq-transformer/sal/seed-1"


def test_an_embedding_map_shows_every_word_where_the_table_says(results: Results) -> None:
    results.add(JUMP, "scan-jump-x2/transformer/default/seed-1")
    results.analyse("figure3")
    figure, plotted = draw(embedding_maps, results.inputs("figure3"))
    for panel, name in zip(figure.axes, ("no quantisation", "SoVQ, 6 codes"), strict=True):
        drawn = np.concatenate([points.get_offsets() for points in panel.collections])
        table = plotted[plotted["panel"] == name]
        assert sorted(map(tuple, drawn.round(4))) == sorted(
            map(tuple, table[["x", "y"]].round(4).to_numpy())
        )
        assert {text.get_text() for text in panel.texts} == set(table["word"])
    # Lines join words of one code: none without codes, and with them a tree for each.
    codes = plotted.loc[plotted["panel"] == "SoVQ, 6 codes", "code"]
    assert not figure.axes[0].lines
    leaders = sum(line.get_color() == "0.6" for line in figure.axes[1].lines)
    assert len(figure.axes[1].lines) - leaders == len(codes) - codes.nunique()


@pytest.mark.parametrize(
    ("accuracies", "shown", "said"),
    [
        ((20.0, 90.0, 60.0), 3, "accuracy 60.0%, median seed 3"),
        ((60.0, 20.0), 2, "accuracy 20.0%, median seed 2"),
        ((0.0, 0.0, 0.0), 1, "accuracy 0.0%, median seed 1"),
        ((12.0,), 1, "accuracy 12.0%, seed 1"),
    ],
)
def test_the_seed_of_median_accuracy_is_shown(
    results: Results, accuracies, shown: int, said: str
) -> None:
    for seed, accuracy in enumerate(accuracies, start=1):
        results.add(f"scan-jump-x2/sq-transformer/sal/seed-{seed}", accuracy=accuracy)
    results.analyse("figure3")
    inputs = results.inputs("figure3")
    figure, plotted = draw(embedding_maps, inputs)
    assert plotted["seed"].unique().tolist() == [shown]
    assert f"(b) SoVQ, 6 codes\n{said}" in texts(figure)


@pytest.mark.parametrize("display", ["figure3", "figure6", "figure-codes"])
def test_labels_of_an_embedding_map_do_not_overlap(results: Results, display: str) -> None:
    results.add(
        JUMP,
        "scan-jump-x2/transformer/default/seed-1",
        "scan-jump-x2/sq-transformer/codes-12/seed-1",
    )
    results.analyse(display)
    figure, plotted = draw(embedding_maps, results.inputs(display))
    figure.canvas.draw()
    for panel in (axes for axes in figure.axes if axes.collections):
        boxes = [text.get_window_extent() for text in panel.texts]
        assert overlapping(boxes, [text.get_text() for text in panel.texts]) == []
        frame = panel.get_window_extent()
        assert all(
            frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 for box in boxes
        )
    assert len(plotted)


def test_attention_maps_show_the_weights_and_frame_what_differs(results: Results) -> None:
    results.add(
        "scan-complexity-1x/transformer/default/seed-1",
        "scan-complexity-20x/transformer/default/seed-2",
    )
    results.analyse("figure1")
    inputs = results.inputs("figure1")
    figure, plotted = draw(attention_maps, inputs)
    panels = [axes for axes in figure.axes if axes.images]
    assert len(panels) == 4
    panel, table = panels[3], plotted[plotted["task"] == "scan-complexity-20x"]
    table = table[table["sentence"] == "jump around left"]
    drawn = np.concatenate([np.asarray(image.get_array()).ravel() for image in panel.images])
    np.testing.assert_allclose(
        drawn, table.sort_values(["layer", "head", "query", "key"])["weight"], atol=1e-9
    )
    by_head = inputs.read_table("kl_by_head")
    above = by_head[(by_head["attention_kl"] > 0.1) & (by_head["sentence"] == "jump around left")]
    frames = [patch for axes in panels for patch in axes.patches if isinstance(patch, Rectangle)]
    assert len(frames) == len(above) > 0
    assert not panels[0].patches and not panels[2].patches


def test_panels_of_runs_that_the_scale_does_not_have_say_so(results: Results) -> None:
    results.add("scan-complexity-1x/transformer/default/seed-1")
    results.analyse("figure8")
    figure, _ = draw(attention_maps, results.inputs("figure8"))
    assert texts(figure).count("not run at demo") == 3 * 2


def test_learning_curves_are_the_history_and_its_mean(results: Results) -> None:
    results.add(JUMP, accuracy=20)
    results.add("scan-jump-x2/sq-transformer/sal/seed-2", accuracy=60)
    figure, plotted = draw(learning_curves, results.inputs("learning-curves"))
    first, second, mean = figure.axes[0].lines
    assert list(first.get_ydata()) == [4, 8, 12, 16, 20] and list(second.get_ydata()) == [
        12,
        24,
        36,
        48,
        60,
    ]
    assert list(mean.get_ydata()) == [8, 16, 24, 32, 40] and list(mean.get_xdata()) == [
        20,
        40,
        60,
        80,
        100,
    ]
    assert numbers(plotted, "value") == [4, 8, 12, 16, 20, 12, 24, 36, 48, 60]
    assert texts(figure).count("not run at demo") == 2


def test_scores_of_another_checkpoint_can_be_selected(results: Results) -> None:
    """Without a readout a run's scores are those of its best checkpoint."""
    results.add("scan-jump-x2/transformer/default/seed-1")
    file = results.folder / "runs/scan-jump-x2/transformer/default/seed-1/eval/scores.csv"
    scores = load_scores(file)
    write_scores(file, scores + [score._replace(readout="last", value=1.5) for score in scores])
    inputs = results.inputs("learning-curves")
    best = inputs.select_scores("exact_match")
    last = inputs.select_scores("exact_match", readout="last")
    assert best["readout"].isna().all() and len(best) == len(last) == 1
    assert last["readout"].tolist() == ["last"] and last["value"].tolist() == [1.5]


def test_a_step_at_which_one_seed_was_not_validated_has_no_mean(results: Results) -> None:
    results.add(JUMP, accuracy=20)
    results.add("scan-jump-x2/sq-transformer/sal/seed-2", accuracy=60)
    inputs = results.inputs("learning-curves")
    history = inputs.results.path / "runs/scan-jump-x2/sq-transformer/sal/seed-2/training.csv"
    table = pandas.read_csv(history)
    table[table["step"] < 80].to_csv(history, index=False)
    first, second, mean = draw(learning_curves, inputs)[0].axes[0].lines
    assert (len(first.get_xdata()), len(second.get_xdata())) == (5, 3)
    assert list(mean.get_xdata()) == [20, 40, 60] and list(mean.get_ydata()) == [8, 16, 24]


@pytest.mark.parametrize(("accuracy", "top"), [(60, 61.8), (5, 5.15), (0, 1.03)])
def test_the_axis_of_learning_curves_ends_at_the_highest_value(
    results: Results, accuracy: float, top: float
) -> None:
    results.add(JUMP, accuracy=accuracy)
    results.add("cogs/transformer/default/seed-1", accuracy=100)
    figure, _ = draw(learning_curves, results.inputs("learning-curves"))
    assert figure.axes[0].get_ylim()[1] == pytest.approx(top) and figure.axes[2].get_ylim()[
        1
    ] == pytest.approx(103)


def test_neighbours_stand_beside_the_published_ones(results: Results) -> None:
    results.add("cogs/transformer/default/seed-1")
    results.analyse("table5")
    inputs = results.inputs("table5")
    figure, plotted = draw(neighbours, inputs)
    assert plotted["word"].drop_duplicates().tolist()[:3] == ["William", "draw", "ate"]
    assert plotted.loc[0, "neighbours"].startswith("Sophia, Riley, Carter")
    assert texts(figure).count("not run at demo") == 11
    assert len(plotted) == 33 and plotted["model"].tolist()[:2] == ["published", "Transformer"]
    classes = inputs.read_table("classes").set_index("word")["class"]
    line = plotted[(plotted["word"] == "table") & (plotted["model"] == "Transformer")].iloc[0]
    words = line["neighbours"].split(", ")
    assert line["same_class"] == sum(classes[word] == classes["table"] for word in words)
    # The generated COGS has no "William", so its class and its neighbours are unknown.
    william = plotted[plotted["word"] == "William"]
    assert (
        "William" not in classes
        and william["classified"].tolist() == [0, 0, 0]
        and william["neighbours"].iloc[1] == ""
    )
    assert "not in the training data" in texts(figure)


def test_an_analysis_without_runs_beside_another_leaves_numbers_numbers(results: Results) -> None:
    results.add("scan-jump-x2/transformer/default/seed-1")
    results.analyse("figure3")
    inputs = results.inputs("figure3")
    first = results.folder / "analyses/sq_transformer/embeddings-addjump/words.csv"
    second = first.parents[1] / "empty/words.csv"
    second.parent.mkdir()
    second.write_text(first.read_text().splitlines(keepends=True)[0])
    inputs.evidence.analyses["empty"] = []
    assert inputs.read_table("words").equals(pandas.read_csv(first))


def test_pairs_of_sentences_stand_beside_what_models_make_of_them(results: Results) -> None:
    results.add("cognition/transformer/default/seed-1", "cognition/sq-transformer/srl/seed-1")
    results.analyse("table6")
    file = results.folder / "analyses/sq_transformer/head-agreement-cognition/pairs.csv"
    columns = pandas.read_csv(file).columns  # generated data have none of the paper's sentences
    names = {"task": "cognition", "pair": 2, "first": "a", "second": "b"}
    made = []
    for method, variant, shares in (
        ("transformer", "default", (50, 70)),
        ("sq-transformer", "srl", (80, 90)),
    ):
        of = names | {"method": method, "variant": variant}
        made += [
            of | {"seed": s, "agreement": share, "same_codes": s == 1 if variant == "srl" else None}
            for s, share in enumerate(shares, start=1)
        ]
    pandas.DataFrame(made, columns=columns).to_csv(file, index=False)
    file.with_name("analysis.json").unlink()  # else the file would be known to be changed
    figure, plotted = draw(sentence_pairs, results.inputs("table6"))
    assert (
        len(plotted) == 96
        and plotted["agreement"].notna().sum() == (~plotted["published"]).sum() == 2
    )
    second = plotted[plotted["pair"] == "2"]
    assert numbers(second, "agreement") == [60, 85]
    # The Transformer has no codes.
    assert second["same_codes"].isna().tolist() == [True, False]
    assert second["same_codes"].iloc[1] == 1
    said = texts(figure)
    assert said.count("She chose another child he liked .") == 1 and {
        "60%",
        "85%",
        "1 of 2",
    } <= set(said)
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert overlapping(boxes, said) == []


def test_a_published_number_that_is_not_there_is_an_error(results: Results) -> None:
    results.analyse("table5")
    with pytest.raises(UserError, match="table9/a/b/c"):
        results.inputs("table5").get_published(Key("table9", "a", "b", "c"))


def test_words_that_look_like_missing_values_are_words(results: Results) -> None:
    results.add("cogs/transformer/default/seed-1")
    results.analyse("figure7")
    file = results.folder / "analyses/sq_transformer/embeddings-cogs/words.csv"
    table = pandas.read_csv(file)
    table.loc[0, "word"] = "null"
    table.to_csv(file, index=False)
    file.with_name("analysis.json").unlink()  # else the file would be known to be changed
    assert results.inputs("figure7").read_table("words").loc[0, "word"] == "null"
