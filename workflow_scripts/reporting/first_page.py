"""The first page of the report: what the papers claim, what came out, and what was run for it."""

import re
from collections import Counter

from workflow_scripts.catalogue.loading import Catalogue
from workflow_scripts.reporting.layout import PROTOCOL_NOTES, effect_decimals, number, unbroken
from workflow_scripts.reporting.page import duration, page, render
from workflow_scripts.reporting.spec import Claim
from workflow_scripts.reporting.statistics import holm
from workflow_scripts.reporting.trained import Trained
from workflow_scripts.reporting.verdicts import INCONCLUSIVE, NO_VERDICT, NOT_REPRODUCED, NOT_RUN, REPRODUCED, Outcome

VERDICTS = {
    REPRODUCED: "the whole 95% interval of the effect lies beyond what is claimed",
    NOT_REPRODUCED: "the whole interval lies short of what is claimed",
    INCONCLUSIVE: "the interval holds both, or one seed has none, or all seeds of both sides are at 0% or at 100%, or "
    "the claim supposes another one that is not reproduced",
    NO_VERDICT: "measured, but on made-up data, or at a scale that only shows that everything works",
    NOT_RUN: "this scale does not measure it",
}
PROTOCOLS = {
    "paper": "the papers' own data, models and schedules",
    "reduced": "smaller models, data or schedules than the papers'",
    "stand_in": "made-up data",
}
ASKED = {"greater": "above", "less": "under", "no_gain": "at most", "falls_with": "under"}
OVERVIEW = """
{% for sentence in said %}<p>{{ sentence }}</p>
{% endfor %}
<ul class="notes">{% for name, count, meaning in verdicts %}<li>{{ count }}
<span class="chip {{ name | replace(' ', '-') }}">{{ name }}</span> {{ meaning }}</li>{% endfor %}</ul>
{% for paper in papers %}
<h2>{{ paper.title }}</h2>
<div class="scroll"><table>
<thead><tr><th class="label">claim</th><th>effect</th><th class="label">verdict</th></tr></thead>
<tbody>
{% for claim in paper.claims %}
<tr><td class="text">{{ claim.statement }}{% if claim.post_hoc %} <b>(post hoc)</b>{% endif %}
<small>{{ claim.source }}; claimed: {{ claim.asked }}</small>
<small>{{ claim.compared }}</small></td>
<td><div class="pair stack">
{% if claim.published %}<span class="paper"><i>paper</i> {{ claim.published }}
{%- if claim.published_interval %}<small>{{ claim.published_interval }}</small>{% endif %}</span>
{% endif %}
{% if claim.effect %}<span class="ours"><b>{{ claim.effect }}</b>
{%- for detail in claim.details %}<small>{{ detail }}</small>{% endfor %}</span>
{% endif %}
</div></td>
<td class="text"><span class="chip {{ claim.verdict | replace(' ', '-') }}">{{ claim.verdict }}</span>
<small>{{ claim.reason }}</small></td></tr>
{% endfor %}
</tbody></table></div>
{% endfor %}
<h2>How a verdict comes about</h2>
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
{% endfor %}
</tbody></table></div>
<ul class="notes">{% for note in protocols %}<li>{{ note }}</li>{% endfor %}</ul>
"""
# Snakemake centres this page between top and bottom of the window: of a page that is longer the top could not be
# reached. Hence the box with a scroll bar of its own.
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


def overview_html(catalogue: Catalogue, scale: str, outcomes: dict[str, list[Outcome]], trained: list[Trained]) -> str:
    """A page that stands alone: claims with effects and verdicts by paper, how they were reached, and all runs."""
    titles = {key: paper.requests.title for key, paper in catalogue.papers.items()}
    papers = [{"title": titles[key], "claims": _claims_texts(judged)} for key, judged in outcomes.items() if judged]
    everything = [outcome for judged in outcomes.values() for outcome in judged]
    body = render(
        OVERVIEW,
        said=introduction(catalogue, scale, trained),
        verdicts=verdict_counts(everything),
        papers=papers,
        notes=method_notes(everything),
        trained=trained,
        protocols=[PROTOCOL_NOTES[name] for name in dict.fromkeys(run.protocol for run in trained)],
    )
    return page("Which claims reproduce", f"Recompose, scale {scale}: {catalogue.scales[scale].title}", body)


def overview_rst(catalogue: Catalogue, scale: str, outcomes: dict[str, list[Outcome]], trained: list[Trained]) -> str:
    """The same in short, for the narrow first page of Snakemake's report, which fills it as a Jinja template."""
    claims = []
    for key, judged in outcomes.items():
        rows = []
        for texts in _claims_texts(judged):
            effect = f" {rst_escape(texts['effect'])}" if texts["effect"] else ""
            after = " (post hoc)" if texts["post_hoc"] else ""
            rows.append((rst_escape(texts["statement"]) + after, f"**{texts['verdict']}**{effect}"))
        claims.append(rst_table((rst_escape(catalogue.papers[key].requests.title), "Verdict"), (62, 38), rows))
    everything = [outcome for judged in outcomes.values() for outcome in judged]
    verdicts = [(str(count), f"**{name}**", rst_escape(text)) for name, count, text in verdict_counts(everything)]
    runs = [tuple(map(rst_escape, texts)) for texts in trained_by_task(catalogue, trained)]
    return RST.format(
        said="\n\n".join(map(rst_escape, introduction(catalogue, scale, trained))),
        verdicts=rst_table(("Claims", "Verdict", "It means"), (8, 20, 72), verdicts),
        runs=rst_table(("What was trained", "Methods, and their trainings"), (40, 60), runs),
        claims="".join(claims),
    )


def rst_table(heads: tuple[str, ...], widths: tuple[int, ...], rows: list[tuple[str, ...]]) -> str:
    """A table in reStructuredText; nothing where there are no rows."""
    if not rows:
        return ""
    lines = [".. list-table::", "   :header-rows: 1", f"   :widths: {' '.join(map(str, widths))}", ""]
    for row in (heads, *rows):
        lines += [f"   {'  ' if i else '* '}- {text}" for i, text in enumerate(row)]
    return "\n".join([*lines, "", ""])


def rst_escape(text: str) -> str:
    """Text that reStructuredText prints as it is, and that Jinja leaves alone."""
    return re.sub(r"([\\*`|_{}<>\[\]])", r"\\\1", text)


def introduction(catalogue: Catalogue, scale: str, trained: list[Trained]) -> list[str]:
    """What the scale is, what it is for, and what was run at it, in sentences."""
    described = catalogue.scales[scale]
    said = [f"Scale {scale}: {described.title}. It is for {described.purpose}."]
    counts = Counter()
    for run in trained:
        counts[run.protocol] += len(run.seeds)
    if not counts:
        return [*said, "Nothing was run."]
    hours = duration(sum(run.hours for run in trained))
    devices = ", ".join(sorted({device for run in trained for device in run.devices}))
    kinds = ", ".join(f"{counts[name]} {name} ({text})" for name, text in PROTOCOLS.items() if counts[name])
    return [*said, f"{counts.total()} trainings, {hours} of training in all, on {devices}. By protocol: {kinds}."]


def verdict_counts(outcomes: list[Outcome]) -> list[tuple[str, int, str]]:
    """Each verdict with the number of claims that have it, and what it means."""
    counts = Counter(outcome.verdict for outcome in outcomes)
    return [(name, counts[name], meaning) for name, meaning in VERDICTS.items()]


def trained_by_task(catalogue: Catalogue, trained: list[Trained]) -> list[tuple[str, str]]:
    """Title of a task, and of the methods that were trained on it, each with how many trainings of it."""
    counts: dict[str, Counter] = {}
    for run in trained:
        task, method, _ = run.name.split("/")
        counts.setdefault(catalogue.tasks[task].title, Counter())[catalogue.methods[method].title] += len(run.seeds)
    return [
        (task, "; ".join(f"{method} ({count})" for method, count in found.items())) for task, found in counts.items()
    ]


def method_notes(outcomes: list[Outcome]) -> list[str]:
    """What is replicated, and the method and assumptions of every kind of interval that the claims use."""
    notes = [
        "The unit of replication is the training seed: two sides whose runs start from the same weights (the same run "
        "or model of the hub) are paired by seed, all others are independent.",
        "Post hoc: the claim was written, or its margin set, after results had been seen. What had been seen may have "
        "led to it: its verdict says less.",
        "p: no effect at all, two-sided, corrected by Holm over the claims of a paper that bear a verdict.",
    ]
    notes += dict.fromkeys(f"{outcome.effect.method}." for outcome in outcomes if outcome.effect)
    return notes


def _claims_texts(judged: list[Outcome]) -> list[dict]:
    """What the ledger says about the claims of one paper."""
    tested = [outcome for outcome in judged if outcome.p_holm is not None]
    return [
        _claim_texts(outcome, [other.effect.p_value for other in tested if other is not outcome]) for outcome in judged
    ]


def asked(claim: Claim) -> str:
    """What a claim asks of its effect: `above 25 points`, `under −0.5 tau`."""
    bound = 0 - claim.at_least if ASKED[claim.relation] == "under" else claim.at_least
    unit = "point" if (claim.at_least, claim.unit) == (1, "points") else claim.unit
    return f"{ASKED[claim.relation]} {bound:g} {unit}".replace("-", "−")


def compared(claim: Claim) -> str:
    """What a claim compares: `table1, JUMP: SQ-Transformer less Transformer`, or `table-layers, LRF, COGS less 1`."""
    if not isinstance(claim.right, str):
        return f"{', '.join(claim.left.split('/')[:3])} less {claim.right:g}"
    left, right = (side.split("/")[:3] for side in (claim.left, claim.right))
    pairs = list(zip(left, right, strict=True))
    common = ", ".join(one for one, other in pairs if one == other != "*")
    sides = (", ".join(pair[side] for pair in pairs if pair[0] != pair[1]) for side in (0, 1))
    text = (" against " if claim.relation == "falls_with" else " less ").join(sides)
    return f"{common}: {text}" if common else text


def _claim_texts(outcome: Outcome, others: list[float]) -> dict:
    """What the ledger says about one claim; `others` are the p values of the paper's other claims."""
    claim, effect = outcome.claim, outcome.effect
    decimals = effect_decimals(claim.unit, *((effect.low, effect.high) if effect else ()))
    details = []
    if effect and effect.low is not None:
        details.append(_interval(effect.low, effect.high, decimals))
    if effect:
        sides = "" if claim.relation == "falls_with" else " a side"
        details.append(f"{effect.n} seed{'s' if effect.n > 1 else ''}{sides}")
    if outcome.p_holm is not None:
        details.append(f"p {p_text(effect.p_value)}, corrected {p_text(outcome.p_holm)}")
        least = holm([*others, effect.smallest_p])[-1]
        if least >= 0.05:
            details.append(f"so few seeds cannot go under p {p_text(least)}")
    published, half = outcome.published or (None, None)
    printed = effect_decimals(claim.unit)
    return {
        "statement": claim.statement,
        "source": claim.source,
        "post_hoc": claim.post_hoc,
        "published": number(published, printed, signed=True) if outcome.published else "",
        "published_interval": _interval(published - half, published + half, printed) if half else "",
        "effect": f"{number(effect.value, decimals, signed=True)} {claim.unit}" if effect else "",
        "details": details,
        "asked": asked(claim),
        "compared": compared(claim),
        "verdict": outcome.verdict,
        "reason": "; ".join(filter(None, (outcome.protocol and f"protocol {outcome.protocol}", outcome.reason))),
    }


def _interval(low: float, high: float, decimals: int) -> str:
    return unbroken(f"{number(low, decimals)} to {number(high, decimals)}")


def p_text(p_value: float) -> str:
    """Three digits after the point, and never 0."""
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"
