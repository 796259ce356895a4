"""A table as a self-contained HTML page of the report."""

from functools import cache

from jinja2 import Environment, Template

from workflow_scripts.reporting.tables.layout import Grid, use_non_breaking_spaces
from workflow_scripts.reporting.tables.trainings import TrainedVariant

# The report shows a page in a frame of half the window: everything has to read well at a width of
# 600 pixels.
PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }}</title><style>
body { margin: 0 auto; padding: 1.25rem; max-width: 70rem; color: #1c2430; background: #fff;
       font: 14.5px/1.45 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.3rem; line-height: 1.25; margin: .1rem 0 .6rem; }
p { margin: .4rem 0; }
.above, .notes, details { color: #5d6b7c; font-size: .85rem; }
.notes { padding-left: 1.1rem; max-width: 46rem; }
.scroll { overflow-x: auto; margin: .8rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .5rem; text-align: right; vertical-align: top; border-bottom: 1px solid \
#d8dee6; }
thead th { border-bottom: 1px solid #1c2430; vertical-align: bottom; }
th.label, td.label { text-align: left; font-weight: 600; min-width: 9.2rem; }
.group th { text-align: left; font-size: .8rem; color: #5d6b7c; background: #f4f6f9; }
small { display: block; color: #5d6b7c; font-size: .75rem; }
.pair { display: flex; flex-direction: column-reverse; }
.paper { white-space: nowrap; margin-left: auto; }
.paper i { font-style: normal; font-size: .75rem; color: #5d6b7c; }
.ours { margin-left: auto; }
.ours b { white-space: nowrap; }
.grey, .absent { color: #5d6b7c; }
.absent { font-style: italic; font-size: .85rem; }
summary { cursor: pointer; }
code { font: .85em ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
</style></head>
<body>
<p class="above">{{ above }}</p>
<h1>{{ title }}</h1>
<div class="scroll"><table>
<thead><tr><th></th>{% for head in heads %}<th>{{ head | breakable }}</th>{% endfor %}</tr></thead>
<tbody>
{% for line in lines %}
{% if line.heading %}<tr class="group"><th colspan="{{ heads | length + 1 }}">{{ line.heading }}\
</th></tr>
{% endif %}<tr><th class="label" scope="row">{{ line.label | breakable }}</th>
{% for cell in line.cells %}<td><div class="pair">
{% if cell.published %}
<span class="paper{{ ' grey' if cell.is_grey }}" title="{{ cell.source }}"><i>paper\
</i> {{ cell.published }}</span>
{% endif %}
{% if cell.status in ("measured", "computed") %}<span class="ours"><b>{{ cell.ours }}\
</b>{{ cell.marker }}
{%- if cell.seeds %}<small>{{ cell.seeds | unbroken }}</small>{% endif %}
{%- if cell.difference %}<small>{{ (cell.difference ~ " to the paper") | unbroken }}</small>\
{% endif %}
{%- if cell.protocol == "stand_in" %}<small>{{ "generated data" | unbroken }}</small>{% endif %}\
</span>
{% elif cell.ours %}<span class="ours absent">{{ cell.ours }}</span>
{% endif %}</div></td>
{% endfor %}</tr>
{% endfor %}</tbody></table></div>
<ul class="notes">{% for note in notes %}<li>{{ note }}</li>{% endfor %}</ul>
{% if trained %}<details><summary>What was run</summary>
<div class="scroll"><table>
<thead><tr><th class="label">run</th><th>seeds</th><th>protocol</th><th>steps</th><th>parameters\
</th></tr></thead>
<tbody>
{% for run in trained %}
<tr><td class="label"><code>{{ run.variant_key | string | breakable }}</code></td>
<td>{{ run.seeds | join(", ") }}</td>
<td>{{ run.protocol }}</td><td>{{ "{:,}".format(run.steps) }}</td>\
<td>{{ "{:,}".format(run.parameters) }}</td></tr>
{% endfor %}</tbody></table></div>
<p>All settings of a run:
<code>.venv/bin/python -m workflow_scripts plan --show {{ \
trained[0].variant_key.make_run(trained[0].seeds[0]) }}</code></p>
<p>This table again: <code>{{ command }}</code></p>
</details>
{% endif %}
</body></html>
"""


def format_html_page(
    title: str,
    above: str,
    grid: Grid,
    notes: list[str],
    trained: list[TrainedVariant],
    command: str,
) -> str:
    """Format the page of a table with its notes and, folded, what was run and how to rerun it.

    All texts are escaped.
    """
    values = {
        "title": title,
        "above": above,
        "notes": notes,
        "trained": trained,
        "command": command,
    }
    return _make_template().render(heads=grid.heads, lines=grid.lines, **values)


@cache
def _make_template() -> Template:
    """Compile PAGE."""
    environment = Environment(autoescape=True, trim_blocks=True)
    # Spaces of no width let a long name break after underscores and slashes.
    breakable = str.maketrans({"_": "_\u200b", "/": "/\u200b"})
    environment.filters |= {
        "unbroken": use_non_breaking_spaces,
        "breakable": lambda text: text.translate(breakable),
    }
    return environment.from_string(PAGE)
