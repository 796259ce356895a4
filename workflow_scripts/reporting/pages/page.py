"""Self-contained HTML pages of the report: one style, and the page of a table."""

from jinja2 import Environment

from workflow_scripts.reporting.pages.training_summary import TrainingSummary
from workflow_scripts.reporting.tables.layout import Grid, format_number, use_non_breaking_spaces

# The report shows a page in a frame of half the window: everything has to read well at a width of 600 pixels.
STYLE = """
:root { color-scheme: light; --ink: #1c2430; --soft: #5d6b7c; --line: #d8dee6; --band: #f4f6f9;
        --good: #0b6e4f; --bad: #a4343a; --open: #8a5a00; --grey: #7b8694; }
* { box-sizing: border-box; }
body { margin: 0; padding: 1.25rem; color: var(--ink); background: #fff;
       font: 14.5px/1.45 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
main { max-width: 70rem; margin: 0 auto; }
h1 { font-size: 1.3rem; line-height: 1.25; margin: .1rem 0 .6rem; }
h2 { font-size: 1.05rem; margin: 1.6rem 0 .5rem; }
p { margin: .4rem 0; max-width: 46rem; }
.above { color: var(--soft); font-size: .85rem; margin: 0; max-width: none; }
.scroll { overflow-x: auto; margin: .8rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .5rem; text-align: right; vertical-align: top; border-bottom: 1px solid var(--line); }
thead th { border-bottom: 1px solid var(--ink); vertical-align: bottom; }
th.label, td.label { text-align: left; font-weight: 600; min-width: 9.2rem; }
td.text { text-align: left; }
tr.group th { text-align: left; font-weight: 600; font-size: .8rem; color: var(--soft); background: var(--band);
              border-bottom: 1px solid var(--line); padding: .2rem .5rem; }
small { display: block; color: var(--soft); font-size: .75rem; font-weight: normal; }
/* Ours and the paper's side by side; where there is no room, the paper's below ours. */
.pair { display: flex; flex-wrap: wrap-reverse; justify-content: space-between; column-gap: 1rem; }
.stack { flex-flow: column-reverse nowrap; align-items: flex-end; }
.paper { white-space: nowrap; margin-left: auto; }
.paper i { font-style: normal; font-size: .75rem; color: var(--soft); }
.ours { margin-left: auto; }
.ours b { font-weight: 650; white-space: nowrap; }
.grey { color: var(--grey); }
.absent { color: var(--grey); font-style: italic; font-size: .85rem; }
.chip { display: inline-block; padding: .05rem .5rem; border-radius: 1rem; font-size: .8rem; font-weight: 600;
        white-space: nowrap; border: 1px solid currentColor; }
.reproduced { color: var(--good); } .not-reproduced { color: var(--bad); } .inconclusive { color: var(--open); }
.no-verdict, .not-run { color: var(--grey); }
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
<thead><tr><th></th>{% for head in heads %}<th>{{ head | breakable }}</th>{% endfor %}</tr></thead>
<tbody>
{% for line in lines %}
{% if line.heading %}<tr class="group"><th colspan="{{ heads | length + 1 }}">{{ line.heading }}</th></tr>
{% endif %}<tr><th class="label" scope="row">{{ line.label | breakable }}</th>
{% for cell in line.cells %}<td><div class="pair">
{% if cell.published %}
<span class="paper{{ ' grey' if cell.is_grey }}" title="{{ cell.source }}"><i>paper</i> {{ cell.published }}</span>
{% endif %}
{% if cell.status in ("measured", "computed") %}<span class="ours"><b>{{ cell.ours }}</b>{{ cell.marker }}
{%- if cell.seeds %}<small>{{ cell.seeds | unbroken }}</small>{% endif %}
{%- if cell.difference %}<small>{{ (cell.difference ~ " to the paper") | unbroken }}</small>{% endif %}
{%- if cell.protocol == "stand_in" %}<small>{{ "generated data" | unbroken }}</small>{% endif %}</span>
{% elif cell.ours %}<span class="ours absent">{{ cell.ours }}</span>
{% endif %}</div></td>
{% endfor %}</tr>
{% endfor %}</tbody></table></div>
<ul class="notes">{% for note in notes %}<li>{{ note }}</li>{% endfor %}</ul>
{% if trained %}<details><summary>What was run</summary>
<div class="scroll"><table>
<thead><tr><th class="label">run</th><th>seeds</th><th>protocol</th><th>steps</th><th>parameters</th></tr></thead>
<tbody>
{% for run in trained %}
<tr><td class="label"><code>{{ run.name | breakable }}</code></td><td>{{ run.seeds | join(", ") }}</td>
<td>{{ run.protocol }}</td><td>{{ run.steps | thousands }}</td><td>{{ run.parameters | thousands }}</td></tr>
{% endfor %}</tbody></table></div>
<p>All settings of a run: <code>.venv/bin/python -m workflow_scripts plan --show {{ trained[0].example }}</code></p>
<p>This table again: <code>{{ command }}</code></p>
</details>
{% endif %}
"""


def render(template: str, **values: object) -> str:
    """Fill a template; every value is escaped."""
    environment = Environment(autoescape=True, trim_blocks=True)
    environment.filters |= {"breakable": allow_line_breaks, "unbroken": use_non_breaking_spaces}
    environment.filters |= {"thousands": format_count, "duration": format_training_time}
    return environment.from_string(template).render(**values)


def allow_line_breaks(text: str) -> str:
    """Allow line breaks after underscores and slashes of a long name, by spaces of no width."""
    return text.replace("_", "_\u200b").replace("/", "/\u200b")


def make_page(title: str, above: str, body: str) -> str:
    """Make a whole page around the HTML `body`."""
    return render(PAGE, title=title, above=above, style=STYLE, body=body)


def format_html_table(grid: Grid, notes: list[str], trained: list[TrainingSummary], command: str) -> str:
    """Format the table with its notes and, folded, what was run and how to rerun it."""
    return render(TABLE, heads=grid.heads, lines=grid.lines, notes=notes, trained=trained, command=command)


def format_training_time(hours: float) -> str:
    """Format `2.7 h`, or minutes below an hour."""
    return f"{format_number(hours, 1)} h" if hours >= 1 else f"{format_number(60 * hours, 1)} min"


def format_count(value: float) -> str:
    """Format 4,000, or 1.21 M from a million on."""
    return f"{format_number(value / 1e6, 2)} M" if value >= 1e6 else f"{value:,.0f}"
