"""Drawings as inline SVG. Colours come from the page's style sheet, so that they follow light and dark."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from workflow_scripts.reporting.site.measured_claims import ComparedCell, Curves, MeasuredClaim
from workflow_scripts.reporting.tables.layout import format_effect


@dataclass(frozen=True)
class Axis:
    """Values `low` to `high` on pixels `left` to `right`. Values beyond are placed at the ends."""

    low: float
    high: float
    left: float
    right: float

    def place(self, value: float) -> float:
        """Return the pixel of a value."""
        share = (value - self.low) / (self.high - self.low)
        return round(self.left + min(max(share, 0), 1) * (self.right - self.left), 1)

    def has(self, value: float) -> bool:
        """Whether the value is between the ends."""
        return self.low <= value <= self.high

    def choose_ticks(self, count: int = 6) -> list[float]:
        """Choose round values, about `count`."""
        raw = (self.high - self.low) / count
        size = 10 ** math.floor(math.log10(raw))
        step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= raw * (1 - 1e-9))
        first = math.ceil(self.low / step - 1e-9)
        return [round(i * step, 10) + 0.0 for i in range(first, math.floor(self.high / step + 1e-9) + 1)]


def make_axis(values: Sequence[float | None], left: float, right: float, cut: float = 0.0, zero: bool = True) -> Axis:
    """Make an axis over `values` with room at its ends, and over 0 unless not `zero`; `cut` off a share of extremes."""
    known = sorted([value for value in values if value is not None] + [0.0] * zero)
    dropped = int(cut * len(known))
    low, high = known[dropped], known[-1 - dropped]
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    room = 0.08 * (high - low) or 1.0
    return Axis(low - room, high + room, left, right)


def format_tick(value: float) -> str:
    """Format a short number with a true minus sign."""
    return f"{value:g}".replace("-", "−")


def draw_text(x: float, y: float, text: str, kind: str = "", anchor: str = "") -> str:
    """Draw a line of text."""
    return f'<text x="{x:g}" y="{y:g}" class="{kind}"{anchor and f" text-anchor={anchor!r}"}>{escape(text)}</text>'


def draw_line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """Draw a straight line."""
    return f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" class="{kind}"/>'


def draw_diamond(x: float, y: float, size: float = 6) -> str:
    """Draw the mark of a published number."""
    return f'<path d="M{x:g} {y - size:g}l{size} {size} {-size} {size} {-size} {-size}z" class="published"/>'


def draw_frame(axis: Axis, top: float, bottom: float, unit: str = "", zero: bool = True) -> str:
    """Draw grid lines with numbers below them. The line of 0 is darker if `zero`."""
    parts = []
    for tick in axis.choose_ticks():
        x = axis.place(tick)
        parts.append(draw_line(x, top, x, bottom, "zero" if zero and tick == 0 else "grid"))
        parts.append(draw_text(x, bottom + 14, format_tick(tick), "tick", "middle"))
    return "".join(parts) + (draw_text(axis.right, bottom + 29, unit, "tick", "end") if unit else "")


def draw_interval(axis: Axis, y: float, claim: MeasuredClaim, size: float = 5) -> str:
    """Draw an effect as a dot with its interval. What is beyond the axis is an arrow head."""
    parts = []
    if claim.low is not None and claim.high is not None:
        parts.append(draw_line(axis.place(claim.low), y, axis.place(claim.high), y, f"bar {claim.kind}"))
        for x in (axis.place(end) for end in (claim.low, claim.high) if axis.has(end)):
            parts.append(draw_line(x, y - size + 1, x, y + size - 1, f"bar {claim.kind}"))
    dot = f'<circle cx="{axis.place(claim.effect or 0):g}" cy="{y:g}" r="{size:g}" class="dot {claim.kind}"/>'
    parts += [dot] if axis.has(claim.effect or 0) else []
    beyond = (end for end in (claim.low, claim.effect, claim.high) if end is not None and not axis.has(end))
    return "".join(parts) + "".join(dict.fromkeys(draw_arrow(axis, y, end, f"dot {claim.kind}") for end in beyond))


def draw_arrow(axis: Axis, y: float, value: float, kind: str) -> str:
    """Draw an arrow head at the end of the axis beyond which the value is."""
    away = 5 if value > axis.high else -5
    return f'<path d="M{axis.place(value):g} {y - 4:g}l{away} 4 {-away} 4z" class="{kind}"/>'


def draw_progress(x: float, y: float, claim: MeasuredClaim) -> str:
    """Draw a ring for each planned seed, filled if it is run, and the number in words."""
    done, planned = int(claim.row["n_seeds"] or 0), int(claim.row["n_planned"] or 0)
    rings = "".join(
        f'<circle cx="{x + 5 + 13 * i:g}" cy="{y:g}" r="4" class="ring{" done" * (i < done)}"/>' for i in range(planned)
    )
    text = f"{done} of {planned} planned seeds" if planned else "no effect of ours"
    return rings + draw_text(x + 13 * planned + 6 * (planned > 0), y + 4, text, "tick")


def make_svg(width: float, height: float, body: str, title: str) -> str:
    """Make the drawing with its title for screen readers."""
    return (
        f'<svg class="drawing" viewBox="0 0 {width:g} {height:g}" role="img" style="max-width:{width:g}px">'
        f"<title>{escape(title)}</title>{body}</svg>"
    )


def draw_effect(claim: MeasuredClaim, width: int = 760, gutter: int = 60) -> str:
    """Draw the paper's effect above ours on one axis with the margin and the smallest effect of interest.

    Without an effect of ours, the planned seeds are below the axis.
    """
    values = [claim.effect, claim.low, claim.high, claim.margin, claim.smallest, claim.published]
    axis, top, bottom = make_axis(values, gutter + 12, width - 12), 20, 68 if claim.effect is not None else 48
    edge, small = axis.place(claim.margin), axis.place(claim.smallest or 0)
    body = f'<rect x="{edge:g}" y="{top}" width="{axis.right - edge:.1f}" height="{bottom - top}" class="claimed"/>'
    body += draw_frame(axis, top, bottom, claim.row["unit"]) + draw_text(axis.right, 14, "as claimed →", "tick", "end")
    body += draw_line(edge, top - 4, edge, bottom, "margin")
    if claim.smallest is not None and claim.smallest != claim.margin:
        body += draw_line(small, top - 4, small, bottom, "smallest")
    if claim.published is not None:
        body += draw_diamond(axis.place(claim.published), 34) + (draw_text(0, 38, "paper", "label") if gutter else "")
    else:
        body += draw_text(axis.left, 14, "the paper prints no such effect", "tick")
    if claim.effect is not None:
        body += draw_interval(axis, 55, claim, 6) + (draw_text(0, 59, "ours", "label") if gutter else "")
    else:
        body += draw_progress(axis.left, bottom + 26, claim)
    return make_svg(width, bottom + 34, body, f"{claim.row['statement']}: {describe_numbers(claim)}")


def describe_numbers(claim: MeasuredClaim) -> str:
    """Describe a drawing in words."""
    published = "" if claim.published is None else f"paper {format_tick(claim.published)} {claim.row['unit']}; "
    ours = format_effect(claim.row) or (f"{claim.seeds} planned seeds" if claim.row["n_planned"] else "not measured")
    return f"{published}ours {ours}; {claim.row['verdict']}"


def draw_seeds(cells: Sequence[ComparedCell], width: int = 760) -> str:
    """Draw each seed as a dot, the mean as a line, and the published number as a diamond; empty without numbers."""
    shown = [cell for cell in cells if cell.values or cell.published is not None]
    values = [value for cell in shown for value in (*cell.values.values(), cell.published)]
    if not shown:
        return ""
    axis, body = make_axis(values, 12, width - 12, zero=False), ""
    for number, cell in enumerate(shown):
        y = 34 + 48 * number
        body += draw_text(12, y - 14, cell.label, "label haloed")
        body += draw_line(12, y, width - 12, y, "grid")
        if cell.mean is not None:
            x = axis.place(cell.mean)
            body += draw_line(x, y - 10, x, y + 10, f"mean {cell.side}")
        placed: list[float] = []
        for seed, value in cell.values.items():
            x = axis.place(value)
            # Dots that would cover each other go up and down in turn.
            near = sum(abs(x - other) < 9 for other in placed)
            placed.append(x)
            at = y + (near + 1) // 2 * 6 * (-1 if near % 2 else 1)
            name = f"seed {seed}" if seed else "without seeds"
            dot = f'<circle cx="{x:g}" cy="{at:g}" r="4.5" class="seed {cell.side}">'
            body += f"{dot}<title>{name}: {value:g}</title></circle>"
        if cell.published is not None:
            body += draw_diamond(axis.place(cell.published), y)
    bottom = 48 * len(shown) + 6
    return make_svg(width, bottom + 20, draw_frame(axis, 8, bottom, zero=False) + body, "values by seed")


def draw_curves(curves: Curves, width: int = 760) -> str:
    """Draw the learning curves of a claim's runs, a panel for each logged value, a colour for each variant."""
    variants = list(dict.fromkeys(run.rpartition("/")[0] for runs in curves.values() for run in runs))
    body, top = "", 8
    for number, variant in enumerate(variants):
        body += draw_line(60, top + 8, 84, top + 8, f"curve series-{number % 4}")
        body += draw_text(92, top + 12, variant, "label")
        top += 20
    for name, runs in curves.items():
        steps = make_axis([step for points in runs.values() for step, _ in points], 60, width - 12)
        values = [value for points in runs.values() for _, value in points]
        top += 40
        height = make_axis(values, top + 130, top, zero=False)
        body += draw_text(4, top - 12, name.replace("_", " "), "label strong") + draw_frame(steps, top, top + 130)
        for tick in height.choose_ticks(4):
            body += draw_text(52, height.place(tick) + 4, format_tick(tick), "tick", "end")
        for run, points in runs.items():
            line = " ".join(f"{steps.place(step):g},{height.place(value):g}" for step, value in points)
            series = variants.index(run.rpartition("/")[0]) % 4
            body += f'<polyline points="{line}" class="curve series-{series}"><title>{escape(run)}</title></polyline>'
        top += 146
    return make_svg(width, top + 18, body + draw_text(width - 12, top + 12, "step", "tick", "end"), "learning curves")


def draw_strip(claim: MeasuredClaim, axis: Axis) -> str:
    """Draw the effect of a row of a table of claims; empty without numbers."""
    if claim.effect is None and claim.published is None:
        return ""
    zero, mark = axis.place(0), axis.place(claim.margin)
    body = draw_line(zero, 1, zero, 17, "grid") + draw_line(mark, 2, mark, 16, "margin")
    if claim.published is not None:
        held = axis.has(claim.published)
        body += (
            draw_diamond(axis.place(claim.published), 9, 4)
            if held
            else draw_arrow(axis, 9, claim.published, "published")
        )
    if claim.effect is not None:
        body += draw_interval(axis, 9, claim, 3.5)
    return make_svg(150, 18, body, describe_numbers(claim))
