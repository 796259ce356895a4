"""Accuracy, and divergence of attention, as the training set grows more complex (figure 8 in numbers)."""

import pandas
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from workflow_scripts.reporting.figures import style
from workflow_scripts.reporting.figures.figure import RUN_COLUMNS, Inputs, select_entry

SMALLEST = 1e-5  # nats; smaller divergences are drawn at this one, since a logarithmic axis has no zero


def draw(inputs: Inputs) -> tuple[Figure, pandas.DataFrame]:
    """Draw accuracy by complexity next to accuracy by divergence, a point per seed.

    An entry of `runs` may name the cells of its published numbers: `published: {accuracy: ..., divergence: ...}`.
    """
    figure = style.make_figure(style.PAGE, 2.6)
    left, right = figure.subplots(1, 2, sharey=True)
    accuracy, divergence, rows = inputs.select_accuracies(), inputs.select_analysis_scores("attention_kl"), []
    for number, entry in enumerate(inputs.display["runs"]):
        found = select_entry(accuracy, entry).merge(select_entry(divergence, entry), on=RUN_COLUMNS)
        points = pandas.DataFrame({"seed": found["seed"], "accuracy": found["value_x"], "divergence": found["value_y"]})
        printed = {name: inputs.get_published(cell).value for name, cell in entry.get("published", {}).items()}
        rows.append(points.assign(panel=entry["panel"], published=False))
        if printed:
            rows.append(pandas.DataFrame([printed | {"panel": entry["panel"], "published": True}]))
        draw_training_set(left, right, number, entry["panel"], points, printed)
    labels = [entry["panel"] for entry in inputs.display["runs"]]
    left.set_xticks(range(len(labels)), [label.replace(" ", "\n") for label in labels])
    left.set(xlim=(-0.5, len(labels) - 0.5), ylim=(-5, 107), ylabel="test accuracy (%)")
    right.set(xscale="log", xlabel="KL divergence of attention (nats)")
    right.tick_params(labelleft=True)
    for axes, letter in ((left, "a"), (right, "b")):
        axes.set_title(f"({letter})", loc="left")
    if accuracy.empty:
        style.mark_not_run(right, inputs.scale)
    hollow = Line2D([], [], linestyle="", label="hollow: published")  # each in the shape of its training set
    handles = [*style.make_markers(dict(zip(labels, style.LOOKS, strict=False))), hollow]
    style.add_legend_below(figure, handles, len(handles))
    return figure, pandas.concat(rows, ignore_index=True)


def draw_training_set(
    left: Axes, right: Axes, number: int, label: str, points: pandas.DataFrame, printed: dict[str, float | None]
) -> None:
    """Draw the seeds of one training set filled, the paper's numbers hollow."""
    look = style.LOOKS[number]
    spread = [number + 0.1 * (at - (len(points) - 1) / 2) for at in range(len(points))]
    filled = style.DOTS | {"marker": look.marker, "color": look.colour}
    hollow = {"marker": look.marker, "linestyle": "", "color": style.GREY, "markerfacecolor": "none", "markersize": 7}
    left.plot(spread, points["accuracy"], **filled)
    right.plot(points["divergence"].clip(lower=SMALLEST), points["accuracy"], **filled)
    if printed.get("accuracy") is not None:
        left.plot([number], printed["accuracy"], **hollow)
    if None not in (printed.get("accuracy"), printed.get("divergence")):
        right.plot([printed["divergence"]], [printed["accuracy"]], **hollow)
