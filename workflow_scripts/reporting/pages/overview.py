"""The first page of the report: claims, verdicts, and what was run."""

import re
from collections import Counter

from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.reporting.claims.verdicts import EXPLORATORY, PRIMARY, VERDICTS, Outcome
from workflow_scripts.reporting.pages.claim_texts import make_claim_texts
from workflow_scripts.reporting.pages.page import format_training_time, make_page, render
from workflow_scripts.reporting.pages.training_summary import TrainingSummary
from workflow_scripts.reporting.tables.layout import PROTOCOL_NOTES

MEANINGS = (  # of VERDICTS
    "the whole interval of the effect is above the margin of the claim",
    "the whole interval is below the smallest effect of interest",
    "the interval is neither, or one seed has none",
    "a control fails, seeds of the analysis plan are missing, the data are generated, or the scale only shows that "
    "everything works",
    "this scale does not measure it, or its runs are not done yet",
)
OURS = "controls of ours"
KINDS = (PRIMARY, EXPLORATORY, OURS)  # of claims, counted apart
PROTOCOLS = {
    "paper": "the papers' own data, models and schedules",
    "reduced": "smaller models, data or schedules than the papers'",
    "stand_in": "generated data",
}
OVERVIEW = """
{% for sentence in said %}<p>{{ sentence }}</p>
{% endfor %}<div class="scroll"><table>
<thead><tr><th class="label">verdict at {{ scale }}</th>{% for kind in kinds %}<th>{{ kind }}</th>{% endfor %}
<th class="label">it means</th></tr></thead>
<tbody>
{% for name, counts, meaning in verdicts %}
<tr><td class="label"><span class="chip {{ name | replace(' ', '-') }}">{{ name }}</span></td>
{%- for count in counts %}<td>{{ count }}</td>{% endfor %}<td class="text">{{ meaning }}</td></tr>
{% endfor %}</tbody></table></div>
{% for paper in papers %}<h2>{{ paper.title }}</h2>
<div class="scroll"><table>
<thead><tr><th class="label">claim</th><th>effect</th><th class="label">verdict</th></tr></thead>
<tbody>
{% for claim in paper.claims %}
<tr><td class="text">{{ claim.statement }}{% if claim.primary %} <b>(primary)</b>{% endif %}
{%- if claim.control %} <b>(control of ours)</b>{% endif %}
{% if claim.quote %}<small>“{{ claim.quote }}”</small>{% endif %}
<small>{{ claim.source }}; claimed: {{ claim.asked }}</small>
<small>{{ claim.compared }}</small>{% if claim.caveat %}<small>{{ claim.caveat }}</small>{% endif %}</td>
<td><div class="pair stack">
{% if claim.published %}<span class="paper"><i>paper</i> {{ claim.published }}
</span>
{% endif %}{% if claim.effect %}<span class="ours"><b>{{ claim.effect }}</b>
{%- for detail in claim.details %}<small>{{ detail }}</small>{% endfor %}</span>
{% endif %}</div></td>
<td class="text"><span class="chip {{ claim.verdict | replace(' ', '-') }}">{{ claim.verdict }}</span> at {{ scale }}
<small>{{ claim.reason }}</small></td></tr>
{% endfor %}</tbody></table></div>
{% endfor %}<h2>How a verdict comes about</h2>
<ul class="notes">{% for note in notes %}<li>{{ note }}</li>{% endfor %}</ul>
<h2>What was run</h2>
<div class="scroll"><table>
<thead><tr><th class="label">task / method / variant</th><th>seeds</th><th>protocol</th><th>steps</th>
<th>parameters</th><th>time</th></tr></thead>
<tbody>
{% for run in trained %}
<tr><td class="label"><code>{{ run.name | breakable }}</code></td><td>{{ run.seeds | join(", ") }}</td>
<td>{{ run.protocol }}</td><td>{{ run.steps | thousands }}</td><td>{{ run.parameters | thousands }}</td>
<td>{{ run.hours | duration }}</td></tr>
{% endfor %}</tbody></table></div>
<ul class="notes">{% for note in protocols %}<li>{{ note }}</li>{% endfor %}</ul>
"""
# Snakemake centres this page in the window, so the top of a longer one could not be reached: it scrolls in a box.
RST = """Recompose
=========

{said}

.. raw:: html

   <div style="max-height: 50vh; overflow-y: auto; padding-right: 1em">

{verdicts}{runs}{claims}.. raw:: html

   </div>

{{% for file in files if (file.path | string).endswith("overview.html") %}}
`All intervals, methods and runs <javascript:app.showResultInfo('{{{{ file.path | string | urlencode }}}}')>`__
{{% endfor %}}
"""


def make_overview_html(
    catalogue: Catalogue, scale: str, outcomes: dict[str, list[Outcome]], trained: list[TrainingSummary]
) -> str:
    """Make a self-contained page: claims with effects and verdicts by paper, the methods, and all runs."""
    titles = {key: paper.experiments.title for key, paper in catalogue.papers.items()}
    papers = [{"title": titles[key], "claims": make_claim_texts(judged)} for key, judged in outcomes.items() if judged]
    everything = [outcome for judged in outcomes.values() for outcome in judged]
    notes = {"notes": describe_methods(everything)}
    notes["protocols"] = [PROTOCOL_NOTES[name] for name in dict.fromkeys(run.protocol for run in trained)]
    said, counted = describe_trainings(catalogue, scale, trained), count_verdicts(everything)
    told = {"scale": scale, "said": said, "kinds": KINDS, "verdicts": counted, "papers": papers, "trained": trained}
    body = render(OVERVIEW, **told, **notes)
    return make_page("Which claims reproduce", f"Recompose, scale {scale}: {catalogue.scales[scale].title}", body)


def make_overview_rst(
    catalogue: Catalogue, scale: str, outcomes: dict[str, list[Outcome]], trained: list[TrainingSummary]
) -> str:
    """Make a short version for the first page of Snakemake's report, which fills it as a Jinja template."""
    claims, at = "", f"at {escape_rst(scale)}"
    for key, judged in outcomes.items():
        rows = []
        for texts in make_claim_texts(judged):
            effect = f" {escape_rst(texts['effect'])}" if texts["effect"] else ""
            after = " (primary)" if texts["primary"] else " (control of ours)" if texts["control"] else ""
            rows.append((escape_rst(texts["statement"]) + after, f"**{texts['verdict']}** {at}{effect}"))
        title = escape_rst(catalogue.papers[key].experiments.title)
        claims += format_rst_table((title, "Verdict"), (62, 38), rows)
    counted = count_verdicts([outcome for judged in outcomes.values() for outcome in judged])
    verdicts = [(f"**{name}**", *map(str, counts), escape_rst(text)) for name, counts, text in counted]
    runs = [tuple(map(escape_rst, texts)) for texts in count_trainings(catalogue, trained)]
    return RST.format(
        said="\n\n".join(map(escape_rst, describe_trainings(catalogue, scale, trained))),
        verdicts=format_rst_table((f"Verdict {at}", *KINDS, "It means"), (20, 11, 14, 11, 44), verdicts),
        runs=format_rst_table(("What was trained", "Methods, and their trainings"), (40, 60), runs),
        claims=claims,
    )


def format_rst_table(heads: tuple[str, ...], widths: tuple[int, ...], rows: list[tuple[str, ...]]) -> str:
    """Format a table in reStructuredText; empty without rows."""
    if not rows:
        return ""
    lines = [".. list-table::", "   :header-rows: 1", f"   :widths: {' '.join(map(str, widths))}", ""]
    for row in (heads, *rows):
        lines += [f"   {'  ' if i else '* '}- {text}" for i, text in enumerate(row)]
    return "\n".join([*lines, "", ""])


def escape_rst(text: str) -> str:
    """Escape text for reStructuredText and Jinja."""
    return re.sub(r"([\\*`|_{}<>\[\]])", r"\\\1", text)


def describe_trainings(catalogue: Catalogue, scale: str, trained: list[TrainingSummary]) -> list[str]:
    """Describe the scale, its purpose, and what was run at it."""
    described = catalogue.scales[scale]
    said = [f"Scale {scale}: {described.title}. It is for {described.purpose}."]
    if not trained:
        return [*said, "Nothing was run."]
    counts = Counter(run.protocol for run in trained for _ in run.seeds)
    hours = format_training_time(sum(run.hours for run in trained))
    devices = ", ".join(sorted({device for run in trained for device in run.devices}))
    kinds = ", ".join(f"{counts[name]} {name} ({text})" for name, text in PROTOCOLS.items() if counts[name])
    return [*said, f"{counts.total()} trainings, {hours} of training in all, on {devices}. By protocol: {kinds}."]


def count_verdicts(outcomes: list[Outcome]) -> list[tuple[str, list[int], str]]:
    """Return each verdict with its number of claims of each of KINDS, and its meaning."""
    counts = Counter(
        (one.verdict, one.role if one.role == PRIMARY or one.claim.kind == "paper" else OURS) for one in outcomes
    )
    return [(name, [counts[name, kind] for kind in KINDS], text) for name, text in zip(VERDICTS, MEANINGS, strict=True)]


def count_trainings(catalogue: Catalogue, trained: list[TrainingSummary]) -> list[tuple[str, str]]:
    """Return the title of each task, and of its trained methods with their number of trainings."""
    counts: dict[str, Counter] = {}
    for run in trained:
        task, method, _ = run.name.split("/")
        counts.setdefault(catalogue.tasks[task].title, Counter())[catalogue.methods[method].title] += len(run.seeds)
    texts = {task: (f"{method} ({count})" for method, count in found.items()) for task, found in counts.items()}
    return [(task, "; ".join(methods)) for task, methods in texts.items()]


def describe_methods(outcomes: list[Outcome]) -> list[str]:
    """Describe the unit of replication, and the method and assumptions of every kind of interval."""
    notes = [
        "The unit of replication is the training seed: two sides whose runs start from the same weights (the same run "
        "or model of the hub) are paired by seed, all others are independent.",
        "Primary: named in the paper's analysis plan before the seeds were run. The intervals of a paper's K primary "
        "claims have the two-sided level 1 - 0.10 / K: the chance of any wrong verdict among them is at most 5%, over "
        "four papers at most 20%.",
        "All other claims are exploratory: 95% intervals; reproduced also needs q at most 0.05 (Benjamini and Hochberg "
        "over the exploratory claims of a paper). Not reproduced: the interval is below the margin plus a quarter of "
        "the published effect.",
        "Effects are in the claimed direction: a positive one is as the paper says.",
    ]
    return notes + list(dict.fromkeys(f"{outcome.effect.method}." for outcome in outcomes if outcome.effect))
