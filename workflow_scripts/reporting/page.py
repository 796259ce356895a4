"""Self-contained HTML pages of the report: one style, and the page of a table."""

from jinja2 import Environment

from workflow_scripts.reporting.cells import MEASURED, Cell
from workflow_scripts.reporting.examples import ExampleTest
from workflow_scripts.reporting.layout import (
    MARKERS,
    Grid,
    difference_text,
    number,
    published_text,
    reproduced_text,
    seeds_text,
)
from workflow_scripts.reporting.trained import Trained

STYLE = """
:root { color-scheme: light; --ink: #1c2430; --soft: #5d6b7c; --line: #d8dee6; --band: #f4f6f9;
        --good: #0b6e4f; --bad: #a4343a; --open: #8a5a00; --grey: #8b95a3; }
* { box-sizing: border-box; }
body { margin: 0; padding: 1.25rem; color: var(--ink); background: #fff;
       font: 15px/1.45 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
main { max-width: 70rem; margin: 0 auto; }
h1 { font-size: 1.3rem; line-height: 1.25; margin: .1rem 0 .6rem; }
h2 { font-size: 1.05rem; margin: 1.6rem 0 .5rem; }
p { margin: .4rem 0; max-width: 46rem; }
.above { color: var(--soft); font-size: .85rem; margin: 0; }
.scroll { overflow-x: auto; margin: .8rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .4rem .7rem; text-align: right; vertical-align: top; border-bottom: 1px solid var(--line); }
thead th { border-bottom: 1px solid var(--ink); vertical-align: bottom; }
thead th.head { text-align: center; border-bottom: 1px solid var(--line); }
thead th.sub { font-weight: normal; font-size: .8rem; color: var(--soft); }
th.label, td.label { text-align: left; font-weight: 600; overflow-wrap: anywhere; min-width: 8rem; }
td.text { text-align: left; }
tr.group th { text-align: left; font-weight: 600; font-size: .8rem; color: var(--soft); background: var(--band);
              border-bottom: 1px solid var(--line); padding: .25rem .7rem; }
td.ours b { font-weight: 650; }
td small, th small { display: block; color: var(--soft); font-size: .75rem; font-weight: normal; white-space: nowrap; }
td.paper, td.ours { white-space: nowrap; }
td.paper { border-left: 1px solid var(--line); }
td.grey { color: var(--grey); }
td.absent { color: var(--grey); font-style: italic; font-size: .85rem; }
td.value { white-space: nowrap; }
.chip { display: inline-block; padding: .05rem .5rem; border-radius: 1rem; font-size: .8rem; font-weight: 600;
        white-space: nowrap; border: 1px solid currentColor; }
.reproduced { color: var(--good); } .not-reproduced { color: var(--bad); } .inconclusive { color: var(--open); }
.not-run { color: var(--grey); }
ul.notes { padding-left: 1.1rem; color: var(--soft); font-size: .85rem; max-width: 46rem; }
ul.notes li { margin: .2rem 0; }
details { margin: .8rem 0; font-size: .85rem; } summary { cursor: pointer; color: var(--soft); }
code { font: .85em ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
@media print { body { padding: 0; } .scroll { overflow: visible; } }
"""

PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }}</title><style>{{ style | safe }}</style></head>
<body><main>
<p class="above">{{ above }}</p>
<h1>{{ title }}</h1>
{{ body | safe }}
</main></body></html>
"""

TABLE = """<div class="scroll"><table>
<thead>
<tr><th></th>{% for head in heads %}
<th class="head" colspan="{{ head.width }}">{{ head.text | breakable }}</th>{% endfor %}</tr>
{% if subheads %}<tr><th></th>{% for text in subheads %}<th class="sub">{{ text }}</th>{% endfor %}</tr>{% endif %}
</thead>
<tbody>
{% for line in lines %}
{% if line.new_group %}<tr class="group"><th colspan="{{ width }}">{{ line.new_group }}</th></tr>
{% endif %}
<tr><th class="label" scope="row">{{ line.label | breakable }}</th>
{% for side in line.sides %}
{% if side.paper is not none %}
<td class="paper{{ ' grey' if side.grey }}" title="{{ side.source }}">{{ side.paper }}</td>
{% endif %}
{% if side.measured %}
<td class="ours"><b>{{ side.mean }}</b>{{ side.marker }}
{% for detail in side.details %}<small>{{ detail }}</small>{% endfor %}</td>
{% else %}
<td class="ours absent">{{ side.mean }}</td>
{% endif %}
{% endfor %}
</tr>
{% endfor %}
</tbody></table></div>
<ul class="notes">{% for note in notes %}<li>{{ note }}</li>{% endfor %}</ul>
{% if trained %}
<details><summary>What was run</summary>
<div class="scroll"><table>
<thead><tr><th class="label">run</th><th>seeds</th><th>protocol</th><th>steps</th><th>parameters</th></tr></thead>
<tbody>
{% for run in trained %}
<tr><td class="label"><code>{{ run.name | breakable }}</code></td><td>{{ run.seeds | join(", ") }}</td>
<td>{{ run.protocol }}</td><td>{{ run.steps | thousands }}</td><td>{{ run.parameters | thousands }}</td></tr>
{% endfor %}
</tbody></table></div>
<p>All settings of a run: <code>python -m workflow_scripts plan --show {{ trained[0].example }}</code></p>
<p>This table again: <code>{{ command }}</code></p>
</details>
{% endif %}
"""


def render(template: str, **values: object) -> str:
    """Fill a template; every value is escaped."""
    environment = Environment(autoescape=True, trim_blocks=True)
    environment.filters |= {"breakable": breakable, "thousands": thousands, "hours": hours_text}
    return environment.from_string(template).render(**values)


def breakable(text: str) -> str:
    """Allow a line break after the underscores and slashes of a long name, by a space of no width."""
    return text.replace("_", "_\u200b").replace("/", "/\u200b")


def page(title: str, above: str, body: str) -> str:
    """A whole page around `body`, which is HTML already."""
    return render(PAGE, title=title, above=above, style=STYLE, body=body)


def html_table(
    grid: Grid, tests: dict[str, ExampleTest], notes: list[str], trained: list[Trained], command: str
) -> str:
    """The table with its notes and, folded, what was run for it and how to make it again."""
    lines, group = [], ""
    for line in grid.lines:
        sides = [_side(cell, published, tests) for cell, published in zip(line.cells, grid.published, strict=True)]
        lines.append({"label": line.label, "new_group": line.group if line.group != group else "", "sides": sides})
        group = line.group
    subheads = [who for published in grid.published for who in (("paper", "ours") if published else ("ours",))]
    heads = zip(grid.heads, grid.published, strict=True)
    return render(
        TABLE,
        heads=[{"text": head, "width": 1 + published} for head, published in heads],
        subheads=subheads if any(grid.published) else [],
        lines=lines,
        width=1 + len(subheads),
        notes=notes,
        trained=trained,
        command=command,
    )


def _side(cell: Cell | None, published: bool, tests: dict[str, ExampleTest]) -> dict:
    """What the template shows of a cell: the published number, if its column has one, and ours."""
    measured = cell is not None and cell.status == MEASURED
    source = [cell.published.source, cell.published.note] if cell and cell.published else []
    details = [seeds_text(cell)] if measured else []
    if measured and cell.difference is not None:
        details.append(f"{difference_text(cell)} to the paper")
    return {
        "paper": published_text(cell) if published else None,
        "grey": measured and cell.protocol != "paper",
        "source": ". ".join(filter(None, source)),
        "measured": measured,
        "mean": reproduced_text(cell),
        "marker": MARKERS[tests[cell.key].outcome] if cell and cell.key in tests else "",
        "details": details,
    }


def hours_text(hours: float) -> str:
    """Hours with a digit that still says something."""
    return number(hours, 1 if hours >= 1 else 2 if hours >= 0.1 else 3)


def thousands(value: float) -> str:
    """4,000, or 1.21 M from a million on."""
    return f"{number(value / 1e6, 2)} M" if value >= 1e6 else f"{value:,.0f}"
