import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reporting.figures.drawn import overlapping
from workflow_scripts.reporting.figures.embedding_maps import list_positions, place_labels
from workflow_scripts.reporting.figures.style import make_figure, use_style


@given(st.floats(1, 50), st.floats(1, 10), st.floats(0.5, 30))
def test_candidates_are_no_farther_than_their_gap(width: float, height: float, gap: float) -> None:
    for x, y, at in list_positions(width, height, [gap]):
        to_side = np.hypot(max(x, 0, -x - width), max(y, 0, -y - height))
        assert at == gap and to_side <= gap + 1e-9


@settings(max_examples=8)
@given(st.integers(0, 1000), st.integers(5, 40))
def test_placed_labels_meet_neither_labels_nor_points(seed: int, count: int) -> None:
    generator = np.random.default_rng(seed)
    xy = generator.random((count, 2))
    names = ["w" * generator.integers(2, 9) for _ in range(count)]
    with use_style():
        figure = make_figure(3, 3, layout=None)
        axes = figure.add_axes((0.05, 0.05, 0.9, 0.9))
        axes.scatter(*xy.T, 16)
        placed = place_labels(axes, xy, names, range(count))
        figure.canvas.draw()
        extents = [label.get_window_extent() for label in placed]
        assert overlapping(extents, [label.get_text() for label in placed]) == []
        for x, y in axes.transData.transform(xy):
            assert not any(box.x0 < x < box.x1 and box.y0 < y < box.y1 for box in extents)
        frame = axes.get_window_extent()
        assert all(
            frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
            for box in extents
        )


def test_a_label_without_a_free_place_is_left_out() -> None:
    with use_style():
        figure = make_figure(1, 1, layout=None)
        axes = figure.add_axes((0, 0, 1, 1), xlim=(0, 1), ylim=(0, 1))
        grid = np.stack(np.meshgrid(np.linspace(0, 1, 25), np.linspace(0, 1, 25)), axis=-1).reshape(
            -1, 2
        )
        assert place_labels(axes, grid, ["label"] * len(grid), [312]) == [] and not axes.texts


def test_the_first_of_two_labels_gets_the_better_place() -> None:
    with use_style():
        figure = make_figure(2, 2, layout=None)
        axes = figure.add_axes((0, 0, 1, 1), xlim=(0, 1), ylim=(0, 1))
        first, second = place_labels(
            axes, np.array([[0.5, 0.5], [0.52, 0.5]]), ["one", "two"], [1, 0]
        )
        assert first.get_text() == "two"
        assert np.hypot(*first.get_position()) <= np.hypot(*second.get_position()) + 30
