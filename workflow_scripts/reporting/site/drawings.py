"""Drawings as inline SVG.

Colours come from the page's style sheet, so that they follow light and dark.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from workflow_scripts.common.run_names import Run, VariantKey
from workflow_scripts.reporting.claims.claim_rows import ClaimRow, format_effect
from workflow_scripts.reporting.site.measured_claims import ComparedCell, MeasuredClaim

ROUNDING = 1e-9  # a tick that misses an end by less is at the end
WIDTH = 640  # of a drawing, in pixels: its text can be read on a phone, too
# Layout of the drawing of an effect, in pixels from its top.
EFFECT_TOP = 20
EFFECT_BOTTOM = 68
EFFECT_BOTTOM_WITHOUT_OURS = 48
PAPER_LINE = 34
OUR_LINE = 55
# Learning curves: their left end, height of a panel, and distance of one panel's top from the next.
CURVE_LEFT = 60
PANEL_HEIGHT = 130
PANEL_STEP = 146
# In the style sheet. Each series has another pair of them, so that it is told from the others
# without its colour, too.
CURVE_COLOURS = 4
CURVE_LINES = 3
CURVE_LOOKS = CURVE_COLOURS * CURVE_LINES  # no number divides both, so that all pairs occur
VALIDATION_PREFIXES = ("valid_", "in_distribution_")  # of logged values, in this order
# Units of logged values by their metric. One that is not here is drawn without a unit.
CURVE_UNITS = {
    **dict.fromkeys(
        ("accuracy", "accuracy_label_0", "auc", "exact_match", "f1", "matthews", "mlm_accuracy"),
        "percent",
    ),
    **dict.fromkeys(("nsp_accuracy", "pearson", "spearman"), "percent"),
    **dict.fromkeys(("cross_entropy", "log_likelihood"), "nats"),
    "loss": "the sum that training minimises",
}
SEED_LINE = 48  # distance of the lines of a drawing by seed
SEED_SPACE = 9  # dots of seeds that are nearer than this would cover each other
# Drawings in a table: their height, and that of one with numbers below its axis.
STRIP_HEIGHT = 18
NUMBERED_STRIP_HEIGHT = 34
# Rings of planned seeds: radius with its line, and distance.
RING_SIZE = 5
RING_STEP = 13


@dataclass(frozen=True)
class Axis:
    """Values `low` to `high` on pixels `left` to `right`. Values beyond are placed at the ends.

    On a vertical axis `left` is the pixel of the lower end, which is the larger number.
    """

    low: float
    high: float
    left: float
    right: float

    def place(self, value: float) -> float:
        """Return the pixel of a value."""
        share = (value - self.low) / (self.high - self.low)
        share = min(max(share, 0), 1)
        return round(self.left + share * (self.right - self.left), 1)

    def has(self, value: float) -> bool:
        """Whether the value is between the ends."""
        return self.low <= value <= self.high

    def choose_ticks(self, count: int = 6) -> list[float]:
        """Choose round values, about `count`."""
        least_step = (self.high - self.low) / count
        power = 10 ** math.floor(math.log10(least_step))  # of ten, at most the step
        steps = [power * factor for factor in (1, 2, 5, 10)]
        step = next(step for step in steps if step >= least_step * (1 - ROUNDING))
        first = math.ceil(self.low / step - ROUNDING)
        last = math.floor(self.high / step + ROUNDING)
        return [round(number * step, 10) + 0.0 for number in range(first, last + 1)]


def make_axis(
    values: Sequence[float | None],
    left: float,
    right: float,
    cut: float = 0.0,
    anchor: float | None = 0.0,
) -> Axis:
    """Make an axis over the values that are not None, with room at its ends.

    left, right: the pixels of its ends; `left` may be the larger one, as on an axis upwards. cut:
    the share of the values that may be beyond either end. anchor: a number that the axis has even
    if no value is there; it counts as one of the values that `cut` is a share of. Without any
    number the axis is around 0.
    """
    numbers = [value for value in values if value is not None]
    if anchor is not None:
        numbers.append(anchor)
    if not numbers:
        numbers.append(0.0)
    numbers.sort()
    n_beyond = int(cut * len(numbers))
    low = numbers[n_beyond]
    high = numbers[-1 - n_beyond]
    if anchor is not None:  # it may be among the values that are beyond the ends
        low = min(low, anchor)
        high = max(high, anchor)
    room = 0.08 * (high - low)
    if room == 0:
        room = 1.0
    return Axis(low - room, high + room, left, right)


def format_tick(value: float) -> str:
    """Format a short number with a true minus sign."""
    return f"{value:g}".replace("-", "−")


def draw_text(x: float, y: float, text: str, kind: str = "", anchor: str = "") -> str:
    """Draw a line of text."""
    attributes = f'x="{x:g}" y="{y:g}" class="{kind}"'
    if anchor:
        attributes += f" text-anchor={anchor!r}"
    return f"<text {attributes}>{escape(text)}</text>"


def draw_line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """Draw a straight line."""
    return f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" class="{kind}"/>'


def draw_diamond(x: float, y: float, size: float = 6) -> str:
    """Draw the mark of a published number."""
    shape = f"M{x:g} {y - size:g}l{size} {size} {-size} {size} {-size} {-size}z"
    return f'<path d="{shape}" class="published"/>'


def draw_circle(x: float, y: float, size: float, kind: str) -> str:
    """Draw a dot or a ring."""
    return f'<circle cx="{x:g}" cy="{y:g}" r="{size:g}" class="{kind}"/>'


def draw_grid(
    axis: Axis, top: float, bottom: float, unit: str = "", anchor: float | None = 0.0
) -> str:
    """Draw grid lines with numbers below them, the unit, and a darker line at `anchor`."""
    parts = []
    if anchor is not None:
        x = axis.place(anchor)
        parts.append(draw_line(x, top, x, bottom, "zero"))
    for tick in axis.choose_ticks():
        x = axis.place(tick)
        if tick != anchor:
            parts.append(draw_line(x, top, x, bottom, "grid"))
        parts.append(draw_text(x, bottom + 14, format_tick(tick), "tick", "middle"))
    if unit:
        parts.append(draw_text(axis.right, bottom + 29, unit, "tick", "end"))
    return "".join(parts)


def draw_interval(axis: Axis, y: float, claim: MeasuredClaim, size: float = 5) -> str:
    """Draw an effect as a dot with its interval. What is beyond the axis is an arrow head."""
    row = claim.row
    bar = f"bar {claim.verdict_class}"
    dot = f"dot {claim.verdict_class}"
    parts = []
    if row.ci_low is not None and row.ci_high is not None:
        low = axis.place(row.ci_low)
        high = axis.place(row.ci_high)
        parts.append(draw_line(low, y, high, y, bar))
        for end in (row.ci_low, row.ci_high):
            if axis.has(end):
                x = axis.place(end)
                parts.append(draw_line(x, y - size + 1, x, y + size - 1, bar))
    effect = row.effect or 0
    if axis.has(effect):
        parts.append(draw_circle(axis.place(effect), y, size, dot))
    arrows: dict[str, None] = {}
    for value in (row.ci_low, row.effect, row.ci_high):
        if value is not None and not axis.has(value):
            arrows[draw_arrow(axis, y, value, dot)] = None
    return "".join([*parts, *arrows])


def draw_arrow(axis: Axis, y: float, value: float, kind: str) -> str:
    """Draw an arrow head at the end of the axis beyond which the value is."""
    away = -5
    if value > axis.high:
        away = 5
    return f'<path d="M{axis.place(value):g} {y - 4:g}l{away} 4 {-away} 4z" class="{kind}"/>'


def draw_progress(x: float, y: float, claim: MeasuredClaim) -> str:
    """Draw a ring for each planned seed, filled if it is run, and their number in words.

    For a claim without planned seeds, draw the words that it has no effect of ours.
    """
    n_done = claim.row.n_seeds or 0
    n_planned = claim.row.n_planned or 0
    if not n_planned:
        return draw_text(x, y + 4, "no effect of ours", "tick")
    parts = []
    for number in range(n_planned):
        kind = "ring"
        if number < n_done:
            kind = "ring done"
        parts.append(draw_circle(x + RING_SIZE + RING_STEP * number, y, 4, kind))
    x_of_words = x + RING_STEP * n_planned + 6
    parts.append(draw_text(x_of_words, y + 4, claim.planned_seed_count, "tick"))
    return "".join(parts)


def make_svg(width: float, height: float, body: str, title: str) -> str:
    """Make the drawing with its title for screen readers."""
    box = f'viewBox="0 0 {width:g} {height:g}" role="img" style="max-width:{width:g}px"'
    return f'<svg class="drawing" {box}><title>{escape(title)}</title>{body}</svg>'


def draw_effect(claim: MeasuredClaim, width: int = WIDTH, gutter: int = 60) -> str:
    """Draw the paper's effect above ours on one axis with the bounds of the verdicts.

    Without an effect of ours, the planned seeds are below the axis. gutter: room for names at the
    left; 0 for none.
    """
    row = claim.row
    ours = [row.effect, row.ci_low, row.ci_high]
    values = [*ours, row.margin, row.smallest_effect, row.published_effect]
    axis = make_axis(values, gutter + 12, width - 12, anchor=row.null)
    bottom = EFFECT_BOTTOM
    if row.effect is None:
        bottom = EFFECT_BOTTOM_WITHOUT_OURS
    body = draw_bounds(axis, row, bottom)
    if row.published_effect is None:
        body += draw_text(axis.left, 14, "the paper prints no such effect", "tick")
    else:
        body += draw_diamond(axis.place(row.published_effect), PAPER_LINE)
        if gutter:
            body += draw_text(0, PAPER_LINE + 4, "paper", "label")
    height = bottom + 34
    if row.effect is None:
        body += draw_progress(axis.left, bottom + 34, claim)  # letters are large on a phone
        height = bottom + 42
    else:
        body += draw_interval(axis, OUR_LINE, claim, 6)
        if gutter:
            body += draw_text(0, OUR_LINE + 4, "ours", "label")
    title = f"{row.statement}: {describe_numbers(claim)}"
    return make_svg(width, height, body, title)


def draw_bounds(axis: Axis, row: ClaimRow, bottom: float) -> str:
    """Draw the axis of an effect, the area of what is claimed, and the bounds of the verdicts."""
    top = EFFECT_TOP
    edge = axis.place(row.margin)
    size = f'width="{axis.right - edge:.1f}" height="{bottom - top}"'
    body = f'<rect x="{edge:g}" y="{top}" {size} class="claimed"/>'
    body += draw_grid(axis, top, bottom, row.unit, row.null)
    body += draw_text(axis.right, 14, "as claimed →", "tick", "end")
    body += draw_line(edge, top - 4, edge, bottom, "margin")
    if row.smallest_effect is not None and row.smallest_effect != row.margin:
        x = axis.place(row.smallest_effect)
        body += draw_line(x, top - 4, x, bottom, "smallest")
    return body


def describe_numbers(claim: MeasuredClaim) -> str:
    """Describe what the drawing of a claim shows, for readers who do not see it.

    Such as `paper 8.2 points; ours +6.3 points (95%: 3.6 to 9.0); reproduced`. In place of our
    effect it is `1 of 9 planned seeds` while these are run, or `not measured`.
    """
    row = claim.row
    if row.effect is not None:
        ours = format_effect(row)
    elif row.n_planned is not None:
        ours = claim.planned_seed_count
    else:
        ours = "not measured"
    ours_and_verdict = f"ours {ours}; {row.state}"
    if row.published_effect is None:
        return ours_and_verdict
    return f"paper {format_tick(row.published_effect)} {row.unit}; {ours_and_verdict}"


def draw_seeds(cells: Sequence[ComparedCell], statement: str, width: int = WIDTH) -> str:
    """Draw each seed as a dot, the mean as a line, and the published number as a diamond.

    Cells without numbers are left out; empty if all are. statement: of the claim, for the title.
    """
    drawn_cells = [cell for cell in cells if cell.values or cell.published is not None]
    if not drawn_cells:
        return ""
    values: list[float | None] = []
    for cell in drawn_cells:
        values += [*cell.values.values(), cell.published]
    axis = make_axis(values, 12, width - 12, anchor=None)
    bottom = SEED_LINE * len(drawn_cells) + 6
    metrics = "; ".join(dict.fromkeys(name_cell_metric(cell) for cell in drawn_cells))
    body = draw_grid(axis, 8, bottom, metrics, anchor=None)
    for number, cell in enumerate(drawn_cells):
        body += draw_cell_seeds(axis, 34 + SEED_LINE * number, cell, width)
    return make_svg(width, bottom + 34, body, f"{statement}: {metrics}, by seed")


def name_cell_metric(cell: ComparedCell) -> str:
    """Name what the values of a cell are, with their unit: `gain in exact match, points`."""
    name = cell.metric.replace("_", " ")
    if cell.intervention == "cap":
        name += " under CAP"
    if cell.is_gain:
        name = f"gain in {name}"
    if cell.unit:
        name += f", {cell.unit}"
    return name


def draw_cell_seeds(axis: Axis, y: float, cell: ComparedCell, width: int) -> str:
    """Draw the line of one cell in a drawing by seed."""
    body = draw_text(12, y - 14, cell.label, "label haloed")
    body += draw_line(12, y, width - 12, y, "grid")
    if cell.mean is not None:
        x = axis.place(cell.mean)
        body += draw_line(x, y - 10, x, y + 10, f"mean {cell.side}")
    placed: list[float] = []
    for seed, value in cell.values.items():
        x = axis.place(value)
        # Dots that would cover each other go up and down in turn: by 0, -6, 6, -12, 12, ...
        n_near = sum(abs(x - placed_x) < SEED_SPACE for placed_x in placed)
        placed.append(x)
        away = (n_near + 1) // 2 * 6
        if n_near % 2:
            away = -away
        name = "without seeds"
        if seed is not None:
            name = f"seed {seed}"
        body += f'<circle cx="{x:g}" cy="{y + away:g}" r="4.5" class="seed {cell.side}">'
        body += f"<title>{name}: {value:g}</title></circle>"
    if cell.published is not None:
        body += draw_diamond(axis.place(cell.published), y)
    return body


def draw_curves(claim: MeasuredClaim, width: int = WIDTH) -> str:
    """Draw the learning curves of a claim's runs.

    There is a panel for each logged value, and a colour and a line for each variant. More variants
    than there are pairs of these have several such drawings, of one task each.
    """
    variants: list[VariantKey] = []
    for runs in claim.curves.values():
        variants += [run.variant_key for run in runs]
    drawn = ""
    for group in split_variants(list(dict.fromkeys(variants))):
        drawn += draw_curves_of_variants(claim, group, width)
    return drawn


def split_variants(variants: Sequence[VariantKey]) -> list[list[VariantKey]]:
    """Split the variants of a claim into those of one drawing, in which each has its own look.

    They stay together if there are looks enough. If not, a drawing has variants of one task alone.
    """
    if len(variants) <= CURVE_LOOKS:
        return [list(variants)]
    variants_of_task: dict[str, list[VariantKey]] = {}
    for variant in variants:
        variants_of_task.setdefault(variant.task, []).append(variant)
    groups = []
    for of_task in variants_of_task.values():
        for start in range(0, len(of_task), CURVE_LOOKS):
            groups.append(of_task[start : start + CURVE_LOOKS])
    return groups


def draw_curves_of_variants(
    claim: MeasuredClaim, variants: Sequence[VariantKey], width: int
) -> str:
    """Draw the learning curves of some variants, no more than there are looks."""
    body = ""
    top = 8
    for number, variant in enumerate(variants):
        body += draw_line(CURVE_LEFT, top + 8, CURVE_LEFT + 36, top + 8, choose_curve_look(number))
        body += draw_text(CURVE_LEFT + 44, top + 12, str(variant), "label")
        top += 20
    drawn_names = []
    for name, runs in claim.curves.items():
        drawn_runs = {run: points for run, points in runs.items() if run.variant_key in variants}
        if not drawn_runs:
            continue
        drawn_names.append(name_logged_value(name))
        top += 40
        body += draw_curve_panel(name, drawn_runs, variants, top, width)
        top += PANEL_STEP
    body += draw_text(width - 12, top + 12, "step", "tick", "end")
    title = f"{claim.row.statement}: learning curves of {'; '.join(drawn_names)}"
    tasks = {variant.task for variant in variants}
    if len(tasks) == 1:
        title += f" on {min(tasks)}"
    return make_svg(width, top + 18, body, title)


def name_logged_value(name: str) -> str:
    """Name a value of a training's log with its unit: `valid exact match, percent`."""
    metric = name
    for prefix in VALIDATION_PREFIXES:
        metric = metric.removeprefix(prefix)
    words = name.replace("_", " ")
    if metric in CURVE_UNITS:
        words += f", {CURVE_UNITS[metric]}"
    return words


def choose_curve_look(number: int) -> str:
    """Return the classes of a series by its number: its colour, and how its line is broken."""
    return f"curve series-{number % CURVE_COLOURS} line-{number % CURVE_LINES}"


def draw_curve_panel(
    name: str,
    runs: dict[Run, list[tuple[int, float]]],
    variants: Sequence[VariantKey],
    top: float,
    width: int,
) -> str:
    """Draw the curves of one logged value: the plot from y = `top` down, the name above it.

    runs: (step, value) of each. variants: of the whole drawing, in the order of their looks.
    """
    bottom = top + PANEL_HEIGHT
    steps: list[float] = []
    values: list[float] = []
    for points in runs.values():
        for step, value in points:
            steps.append(step)
            values.append(value)
    across = make_axis(steps, CURVE_LEFT, width - 12)
    upwards = make_axis(values, bottom, top, anchor=None)
    body = draw_text(4, top - 12, name_logged_value(name), "label strong")
    body += draw_grid(across, top, bottom)
    for tick in upwards.choose_ticks(4):
        y = upwards.place(tick) + 4
        body += draw_text(CURVE_LEFT - 8, y, format_tick(tick), "tick", "end")
    for run, points in runs.items():
        line = " ".join(f"{across.place(x):g},{upwards.place(y):g}" for x, y in points)
        look = choose_curve_look(variants.index(run.variant_key))
        body += f'<polyline points="{line}" class="{look}">'
        body += f"<title>{escape(str(run))}</title></polyline>"
    return body


def draw_strip(claim: MeasuredClaim, shared: Axis) -> str:
    """Draw the effect of a row of a table of claims; empty without numbers.

    shared: the axis of all rows of the unit. A row whose claim begins beyond it has an axis of its
    own, with the numbers of no effect and of where the claim begins.
    """
    row = claim.row
    if row.effect is None and row.published_effect is None:
        return ""
    axis = shared
    height = STRIP_HEIGHT
    body = ""
    if not shared.has(row.margin):
        numbers = [row.margin, row.effect, row.ci_low, row.ci_high, row.published_effect]
        axis = make_axis(numbers, shared.left, shared.right, anchor=row.null)
        height = NUMBERED_STRIP_HEIGHT
        for number in (row.null, row.margin):
            x = axis.place(number)
            body += draw_text(x, height - 3, format_tick(number), "tick", "middle")
    null = axis.place(row.null)
    margin = axis.place(row.margin)
    body += draw_line(null, 1, null, 17, "grid")
    body += draw_line(margin, 2, margin, 16, "margin")
    if row.published_effect is not None:
        if axis.has(row.published_effect):
            body += draw_diamond(axis.place(row.published_effect), 9, 4)
        else:
            body += draw_arrow(axis, 9, row.published_effect, "published")
    if row.effect is not None:
        body += draw_interval(axis, 9, claim, 3.5)
    return make_svg(150, height, body, describe_numbers(claim))
