"""The first page of the report: claims, verdicts, and what was run."""

import re
from collections import Counter

from workflow_scripts.config.display_schema import Claim
from workflow_scripts.config.loading import Catalogue
from workflow_scripts.reporting.claims.effects import get_margin
from workflow_scripts.reporting.claims.verdicts import (
    EXPLORATORY,
    INCONCLUSIVE,
    NO_VERDICT,
    NOT_REPRODUCED,
    NOT_RUN,
    PRIMARY,
    REPRODUCED,
    Outcome,
)
from workflow_scripts.reporting.pages.page import format_training_time, make_page, render
from workflow_scripts.reporting.pages.training_summary import TrainingSummary
from workflow_scripts.reporting.tables.layout import (
    PROTOCOL_NOTES,
    choose_decimals,
    format_number,
    use_non_breaking_spaces,
)

VERDICTS = {
    REPRODUCED: "the whole interval of the effect is above the margin of the claim",
    NOT_REPRODUCED: "the whole interval is below the smallest effect of interest",
    INCONCLUSIVE: "the interval is neither, or one seed has none",
    NO_VERDICT: "a control fails, seeds of the analysis plan are missing, the data are generated, or the scale "
    "only shows that everything works",
    NOT_RUN: "this scale does not measure it, or its runs are not done yet",
}
OURS = "controls of ours"
KINDS = (PRIMARY, EXPLORATORY, OURS)  # of claims, counted apart
PROTOCOLS = {
    "paper": "the papers' own data, models and schedules",
    "reduced": "smaller models, data or schedules than the papers'",
    "stand_in": "generated data",
}
OVERVIEW = """
{% for sentence in said %}<p>{{ sentence }}</p>
{% endfor %}
<div class="scroll"><table>
<thead><tr><th class="label">verdict at {{ scale }}</th>{% for kind in kinds %}<th>{{ kind }}</th>{% endfor %}
<th class="label">it means</th></tr></thead>
<tbody>
{% for name, counts, meaning in verdicts %}
<tr><td class="label"><span class="chip {{ name | replace(' ', '-') }}">{{ name }}</span></td>
{%- for count in counts %}<td>{{ count }}</td>{% endfor %}<td class="text">{{ meaning }}</td></tr>
{% endfor %}
</tbody></table></div>
{% for paper in papers %}
<h2>{{ paper.title }}</h2>
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
{% endif %}
{% if claim.effect %}<span class="ours"><b>{{ claim.effect }}</b>
{%- for detail in claim.details %}<small>{{ detail }}</small>{% endfor %}</span>
{% endif %}
</div></td>
<td class="text"><span class="chip {{ claim.verdict | replace(' ', '-') }}">{{ claim.verdict }}</span> at {{ scale }}
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


def make_overview_html(
    catalogue: Catalogue, scale: str, outcomes: dict[str, list[Outcome]], trained: list[TrainingSummary]
) -> str:
    """Make a self-contained page: claims with effects and verdicts by paper, the methods, and all runs."""
    titles = {key: paper.experiments.title for key, paper in catalogue.papers.items()}
    papers = [{"title": titles[key], "claims": _claims_texts(judged)} for key, judged in outcomes.items() if judged]
    everything = [outcome for judged in outcomes.values() for outcome in judged]
    body = render(
        OVERVIEW,
        scale=scale,
        said=describe_trainings(catalogue, scale, trained),
        kinds=KINDS,
        verdicts=count_verdicts(everything),
        papers=papers,
        notes=describe_methods(everything),
        trained=trained,
        protocols=[PROTOCOL_NOTES[name] for name in dict.fromkeys(run.protocol for run in trained)],
    )
    return make_page("Which claims reproduce", f"Recompose, scale {scale}: {catalogue.scales[scale].title}", body)


def make_overview_rst(
    catalogue: Catalogue, scale: str, outcomes: dict[str, list[Outcome]], trained: list[TrainingSummary]
) -> str:
    """Make a short version for the first page of Snakemake's report, which fills it as a Jinja template."""
    claims = []
    for key, judged in outcomes.items():
        rows = []
        for texts in _claims_texts(judged):
            effect = f" {escape_rst(texts['effect'])}" if texts["effect"] else ""
            after = " (primary)" if texts["primary"] else " (control of ours)" if texts["control"] else ""
            rows.append(
                (escape_rst(texts["statement"]) + after, f"**{texts['verdict']}** at {escape_rst(scale)}{effect}")
            )
        claims.append(
            format_rst_table((escape_rst(catalogue.papers[key].experiments.title), "Verdict"), (62, 38), rows)
        )
    everything = [outcome for judged in outcomes.values() for outcome in judged]
    verdicts = [
        (f"**{name}**", *map(str, counts), escape_rst(text)) for name, counts, text in count_verdicts(everything)
    ]
    runs = [tuple(map(escape_rst, texts)) for texts in count_trainings(catalogue, trained)]
    return RST.format(
        said="\n\n".join(map(escape_rst, describe_trainings(catalogue, scale, trained))),
        verdicts=format_rst_table(
            (f"Verdict at {escape_rst(scale)}", *KINDS, "It means"), (20, 11, 14, 11, 44), verdicts
        ),
        runs=format_rst_table(("What was trained", "Methods, and their trainings"), (40, 60), runs),
        claims="".join(claims),
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
    counts = Counter()
    for run in trained:
        counts[run.protocol] += len(run.seeds)
    if not counts:
        return [*said, "Nothing was run."]
    hours = format_training_time(sum(run.hours for run in trained))
    devices = ", ".join(sorted({device for run in trained for device in run.devices}))
    kinds = ", ".join(f"{counts[name]} {name} ({text})" for name, text in PROTOCOLS.items() if counts[name])
    return [*said, f"{counts.total()} trainings, {hours} of training in all, on {devices}. By protocol: {kinds}."]


def count_verdicts(outcomes: list[Outcome]) -> list[tuple[str, list[int], str]]:
    """Return each verdict with its number of claims per kind of KINDS, and its meaning."""
    counts = Counter((outcome.verdict, _kind(outcome)) for outcome in outcomes)
    return [(name, [counts[name, kind] for kind in KINDS], meaning) for name, meaning in VERDICTS.items()]


def _kind(outcome: Outcome) -> str:
    """Return the kind of KINDS of a claim."""
    return outcome.role if outcome.role == PRIMARY or outcome.claim.kind == "paper" else OURS


def count_trainings(catalogue: Catalogue, trained: list[TrainingSummary]) -> list[tuple[str, str]]:
    """Return the title of each task, and of its trained methods with their number of trainings."""
    counts: dict[str, Counter] = {}
    for run in trained:
        task, method, _ = run.name.split("/")
        counts.setdefault(catalogue.tasks[task].title, Counter())[catalogue.methods[method].title] += len(run.seeds)
    return [
        (task, "; ".join(f"{method} ({count})" for method, count in found.items())) for task, found in counts.items()
    ]


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
    notes += dict.fromkeys(f"{outcome.effect.method}." for outcome in outcomes if outcome.effect)
    return notes


def _claims_texts(judged: list[Outcome]) -> list[dict]:
    """Return the texts about the claims of one paper: primary first, our controls last."""
    order = sorted(judged, key=lambda outcome: (outcome.role != PRIMARY, outcome.claim.kind == "control"))
    return [_claim_texts(outcome) for outcome in order]


def format_criterion(claim: Claim) -> str:
    """Format the criterion of a claim: `more than 25 points`."""
    unit = "point" if (abs(claim.at_least), claim.unit) == (1, "points") else claim.unit
    return f"more than {get_margin(claim):g} {unit}".replace("-", "−")


def format_comparison(claim: Claim) -> str:
    """Format the comparison of a claim: `table1, JUMP: SQ-Transformer less Transformer`."""
    if isinstance(claim.left, list):
        return f"mean over {len(claim.left)} pairs: {_compared(claim, claim.left[0], claim.right[0])}, and so on"
    return _compared(claim, claim.left, claim.right)


def _compared(claim: Claim, left_cell: str, right_cell: str | float) -> str:
    if not isinstance(right_cell, str):
        return f"{', '.join(left_cell.split('/')[:3])} less {right_cell:g}"
    left, right = (side.split("/")[:3] for side in (left_cell, right_cell))
    pairs = list(zip(left, right, strict=True))
    common = ", ".join(one for one, other in pairs if one == other != "*")
    sides = [", ".join(pair[side] for pair in pairs if pair[0] != pair[1]) for side in (0, 1)]
    if claim.relation in ("less", "no_gain"):
        sides.reverse()
    text = (" against " if claim.relation == "falls_with" else " less ").join(sides)
    return f"{common}: {text}" if common else text


def _claim_texts(outcome: Outcome) -> dict:
    """Return the texts about one claim."""
    claim, effect = outcome.claim, outcome.effect
    low, high = outcome.interval or (None, None)
    decimals = choose_decimals(claim.unit, low, high)
    details, shown = [], ""
    if effect or outcome.success:
        value = effect.value if effect else outcome.success.difference
        shown = f"{format_number(value, decimals, signed=True)} {claim.unit}"
    if low is not None:
        details.append(use_non_breaking_spaces(f"{format_number(low, decimals)} to {format_number(high, decimals)}"))
    if outcome.n_seeds and (effect or outcome.success):
        sides = "" if claim.relation == "falls_with" else " a side"
        details.append(f"{outcome.n_seeds} seed{'s' if outcome.n_seeds > 1 else ''}{sides}")
    if outcome.q_value is not None:
        details.append(f"p {format_p_value(outcome.p_value)}, q {format_p_value(outcome.q_value)}")
    if outcome.smallest is not None and (effect or outcome.success):
        details.append(f"smallest effect of interest {outcome.smallest:.3g}")
    return {
        "statement": claim.statement,
        "quote": claim.quote,
        "caveat": claim.caveat,
        "source": claim.source,
        "primary": outcome.role == PRIMARY,
        "control": claim.kind == "control",
        "published": "" if outcome.published is None else _printed(outcome),
        "effect": shown,
        "details": details,
        "asked": format_criterion(claim),
        "compared": format_comparison(claim),
        "verdict": outcome.verdict,
        "reason": "; ".join(filter(None, (outcome.protocol and f"protocol {outcome.protocol}", outcome.reason))),
    }


def _printed(outcome: Outcome) -> str:
    """Format the effect in the paper's numbers, and whether they contradict the claim."""
    text = format_number(outcome.published, choose_decimals(outcome.claim.unit), signed=True)
    return f"{text}, contradicts the claim" if outcome.printed == "contradict" else text


def format_p_value(p_value: float) -> str:
    """Format a p value with three decimals, never as 0."""
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"
