"""Claims of an export in the terminal: of one both sides by seed, effect, interval and verdict."""

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from rich.console import Console
from rich.table import Table

from workflow_scripts.common.console import make_console
from workflow_scripts.evaluation.statistics import SuccessRates
from workflow_scripts.reporting.claims.claim_rows import (
    ClaimRow,
    format_effect,
    format_published_effect,
)
from workflow_scripts.reporting.claims.comparison import Side
from workflow_scripts.reporting.claims.outcome import NOT_REPRODUCED, MeasuredSuccess, Outcome
from workflow_scripts.reporting.committed.glossary import explain_words
from workflow_scripts.reporting.committed.recomputing import FieldDifference
from workflow_scripts.reporting.committed.rescoring_runs import Rescored, describe_unanswered
from workflow_scripts.reporting.committed.run_origins import NOT_RECORDED, RunOrigins
from workflow_scripts.reporting.site.claim_words import (
    describe_comparison,
    explain_metrics,
    name_sides,
)
from workflow_scripts.reporting.site.measured_claims import MeasuredClaim
from workflow_scripts.reporting.tables.cells import WITHHELD

INDENT = "  "
NAME_WIDTH = 11  # of the names of facts, with the space after them
NAMED_UNITS = ("points", "layers", "nats")  # the words of a comparison say what others are
MOST_LETTERS = 240  # of what is said of a data set
PLAIN_WIDTH = 80  # columns, if the output is no terminal
GLOSSARY = Path("docs/glossary.md")
WHY_NOT_RECORDED = (
    "an earlier export left it out of provenance.json; docs/results.md, “What is under version "
    "control”, says of which runs"
)


@dataclass(frozen=True)
class CheckedClaim:
    """A claim that was judged again, and what it rests on.

    measured: the claim as the site words it. rescored: scores from predictions. origins: how its
    runs were made. datasets: by task, how data differ from the paper's. meanings: what metrics
    measure, in words.
    """

    measured: MeasuredClaim
    outcome: Outcome
    rescored: Rescored
    origins: RunOrigins
    datasets: dict[str, list[str]]
    meanings: Mapping[str, str]
    scale: str

    @property
    def row(self) -> ClaimRow:
        """The row of claims.csv."""
        return self.measured.row

    @property
    def threshold(self) -> float | None:
        """What a seed must exceed to have succeeded; None if seeds are not counted so."""
        planned = self.measured.planned
        return planned.entry.threshold if planned else None

    @property
    def success_rates(self) -> SuccessRates | None:
        """How many seeds of each side succeed; None of a claim that compares values."""
        if isinstance(self.outcome.measurement, MeasuredSuccess):
            return self.outcome.measurement.rates
        return None

    @property
    def success(self) -> str:
        """What a seed that succeeds is: `above 50% exact_match`; empty without a threshold."""
        if self.threshold is None:
            return ""
        metric = explain_metrics(self.measured, self.meanings)[0]
        is_percentage = metric.meaning.startswith("percent")
        return f"above {self.threshold:g}{'%' if is_percentage else ''} {metric.name}"


def print_claim(claim: CheckedClaim) -> None:
    """Print what a claim says, what it compares, what follows, and how its runs were made."""
    row = claim.row
    console = make_console(PLAIN_WIDTH, markup=False)
    console.print(f"{row.paper}/{row.claim}: {describe_role(row)}", style="bold")
    print_wrapped(console, row.statement, INDENT)
    if row.quote:
        print_wrapped(console, f"“{row.quote}” ({row.source})", INDENT)
    for word, meaning in explain_words(GLOSSARY, row.statement).items():
        print_wrapped(console, f"{word}: {meaning}", 2 * INDENT)
    console.print()
    print_sides(console, claim)
    console.print()
    print_effect(console, claim)
    console.print()
    for task, notes in claim.datasets.items():
        text = textwrap.shorten("; ".join(notes), MOST_LETTERS, placeholder=" … (datasets.json)")
        print_fact(console, "data", f"{task}, not the paper’s: {text}")
    print_origins(console, claim.origins)


def describe_role(row: ClaimRow) -> str:
    """Say whether a claim is primary or exploratory, and whether it is a control of ours."""
    text = f"{row.role} claim"
    if row.is_primary:
        text += ", named in the analysis plan"
    if row.is_control:
        return f"{text}, a control of ours"
    return text


def print_wrapped(console: Console, text: str, indent: str, first: str = "") -> None:
    """Print text in lines of the console's width, the first with other words in the indent."""
    lines = textwrap.wrap(
        text,
        console.width,
        initial_indent=first or indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    console.print("\n".join(lines))


def print_fact(console: Console, name: str, text: str) -> None:
    """Print a name and what is said of it, in as many lines as that takes."""
    indent = f"{INDENT}{'':{NAME_WIDTH}}"
    print_wrapped(console, text, indent, f"{INDENT}{name:{NAME_WIDTH}}")


def print_sides(console: Console, claim: CheckedClaim) -> None:
    """Print what both sides are, in which metric, and their values by seed."""
    for metric in explain_metrics(claim.measured, claim.meanings):
        print_fact(console, "metric", f"{metric.meaning} ({metric.name})")
    left, right = name_sides(claim.measured)
    left_side, right_side = claim.outcome.sides
    print_fact(console, "left", f"{left}: {describe_cells(left_side)}")
    if isinstance(claim.outcome.claim.right, int | float):
        print_fact(console, "right", f"{right}, a number")
    else:
        print_fact(console, "right", f"{right}: {describe_cells(right_side)}")
    if _is_shown(claim.outcome):
        console.print()
        console.print(make_seed_table(claim))
        for line in describe_origin(claim):
            print_wrapped(console, line, INDENT)


def describe_cells(side: Side) -> str:
    """Name the first cell of a side, and say of how many more it has the mean."""
    more = len(side.cells) - 1
    text = f"cell {side.cells[0].key}"
    return f"{text}, mean with {more} more" if more else text


def print_effect(console: Console, claim: CheckedClaim) -> None:
    """Print what was claimed, the effect, and the verdict with its reason."""
    row = claim.row
    print_fact(console, "claimed", describe_claimed(claim))
    published = format_published_effect(row)
    if published:
        print_fact(console, "published", f"{published}, the effect in the paper’s numbers")
    absent = "none"
    if row.is_planned:
        absent = "none is shown before the last planned seed is run"
    effect = format_effect(row) or absent
    if claim.success_rates is not None:
        rates = claim.success_rates
        effect += f": {rates.left} of {rates.left_n} against {rates.right} of {rates.right_n}"
    print_fact(console, "effect", effect)
    if row.test and row.degrees_of_freedom is not None:
        degrees = f"{row.degrees_of_freedom:.3g} degrees of freedom"
        print_fact(console, "test", f"{row.test}, {degrees}")
    elif row.test:
        print_fact(console, "test", row.test)
    if claim.success_rates is not None and row.quantile is not None:
        print_fact(console, "limit", describe_limit(claim, claim.success_rates, row.quantile))
    print_fact(console, "verdict", describe_verdict(claim))
    if row.caveat:
        print_fact(console, "caveat", row.caveat)


def describe_claimed(claim: CheckedClaim) -> str:
    """Say what the effect is, what it must exceed, and from where on it is of interest."""
    row = claim.row
    comparison = describe_comparison(claim.measured, claim.success)
    unit = f" {row.unit}" if row.unit in NAMED_UNITS else ""
    text = f"{comparison}: above {row.margin:g}{unit}"
    if row.smallest_effect is not None and row.smallest_effect != row.margin:
        text += f"; of interest from {row.smallest_effect:.3g}{unit} on"
    return text.replace(" -", " −")


def describe_limit(claim: CheckedClaim, rates: SuccessRates, quantile: float) -> str:
    """Say how many seeds of the left side can at most succeed, and which limit would decide."""
    limit = rates.compute_upper_limit(quantile)
    confidence = f"{100 * quantile:.4g}%"
    name, _ = name_sides(claim.measured)
    text = (
        f"with a confidence of {confidence}, less than {limit:.2f} of all seeds of {name} are "
        f"{claim.success}"
    )
    if claim.row.smallest_effect is not None:
        text += f"; “{NOT_REPRODUCED}” needs a limit below {claim.row.smallest_effect:.3g}"
    return text


def describe_verdict(claim: CheckedClaim) -> str:
    """Return the verdict, or that the claim is planned, with the reason."""
    row = claim.row
    text = f"{row.state} at {claim.scale}"
    reason = row.explanation
    if claim.threshold is not None:
        reason = reason.replace(f"above {claim.threshold:g}:", f"{claim.success}:")
    return f"{text}: {reason}" if reason else text


def print_differences(differences: list[FieldDifference]) -> None:
    """Print a row for each field that differs, with what is committed and what follows."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(f"{INDENT}field", no_wrap=True)
    table.add_column("committed", overflow="fold")
    table.add_column("recomputed", overflow="fold")
    for difference in differences:
        field = f"{INDENT}{difference.file}: {difference.field.split(': ')[-1]}"
        table.add_row(field, difference.committed, difference.recomputed)
    console = make_console(PLAIN_WIDTH, markup=False)
    console.print()
    console.print(table, soft_wrap=False)


def print_origins(console: Console, origins: RunOrigins) -> None:
    """Print how the runs were made, as far as it is recorded."""
    if not origins.compared:
        return
    runs = str(origins.compared)
    if origins.parents:
        runs += f", and {origins.parents} that their weights come from"
    print_fact(console, "runs", runs)
    print_fact(console, "started", origins.starts)
    if origins.plan:
        print_fact(console, "plan", origins.plan)
    print_fact(console, "commits", origins.commits)
    print_fact(console, "devices", origins.devices)
    print_fact(console, "torch", origins.torch_versions)
    if origins.is_incomplete:
        print_wrapped(console, f"{NOT_RECORDED}: {WHY_NOT_RECORDED}", INDENT)


def _is_shown(outcome: Outcome) -> bool:
    """Whether values by seed are shown: not of a plan whose seeds are not all there."""
    if outcome.measurement is None:
        return False
    return all(cell.status != WITHHELD for side in outcome.sides for cell in side.cells)


def make_seed_table(claim: CheckedClaim) -> Table:
    """Make the table of both sides by seed; a side of several cells has their mean.

    Values that also follow from predictions have a check mark. The paper's numbers are set apart.
    """
    outcome = claim.outcome
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("  seed", "left", "right"):
        table.add_column(name, justify="right")
    sides = [average_side(side) for side in outcome.sides]
    predicted = [average_side(side, claim.rescored) for side in outcome.sides]
    largest = max(abs(value) for values in sides for value in values.values())
    decimals = 2 if largest >= 1 else 4  # a coefficient of variation is a small share
    for seed in sorted({seed for side in sides for seed in side}):
        texts = []
        for values, by_predictions in zip(sides, predicted, strict=True):
            text = f"{values[seed]:.{decimals}f}" if seed in values else ""
            mark = "✓" if seed in by_predictions else " "
            texts.append(f"{text} {mark}")
        table.add_row(str(seed), *texts)
    means = []
    for side, values in zip(outcome.sides, sides, strict=True):
        mean = fmean(values.values()) if values else side.number
        means.append(f"{mean:.{decimals}f}  ")
    table.add_row("mean", *means, style="bold")
    if claim.success_rates is not None:
        rates = claim.success_rates
        shares = (f"{rates.left} of {rates.left_n}  ", f"{rates.right} of {rates.right_n}  ")
        table.add_row(f"{INDENT}{claim.success}", *shares)
    published = [format_published_mean(side, decimals) for side in outcome.sides]
    if any(published):
        table.add_row()
        table.add_row(f"{INDENT}in the paper", *(f"{text}  " for text in published))
    return table


def format_published_mean(side: Side, decimals: int) -> str:
    """Format the paper's number of a side, the mean over its cells; empty unless each has one."""
    numbers = []
    for cell in side.cells:
        if cell.published is None or cell.published.value is None:
            return ""
        numbers.append(cell.published.value)
    return f"{fmean(numbers):.{decimals}f}"


def average_side(side: Side, rescored: Rescored | None = None) -> dict[int, float]:
    """Return seed -> mean over the cells of a side, of the seeds that all of them have.

    With `rescored` by predictions alone.
    """
    values_of_cells = []
    for cell in side.cells:
        values = cell.seeds
        if rescored is not None:
            values = rescored.find_values(cell)
        values_of_cells.append(values)
    shared = set.intersection(*(set(values) for values in values_of_cells))
    means = {}
    for seed in sorted(shared):
        means[seed] = sum(values[seed] for values in values_of_cells) / len(values_of_cells)
    return means


def describe_origin(claim: CheckedClaim) -> list[str]:
    """Say in some lines whether the values follow from predictions, and if not why."""
    if claim.rescored.has_all_values(claim.outcome):
        return ["✓ these scores were computed again from the committed predictions"]
    if not _is_of_predictions(claim.outcome):
        return ["from scores only: those of interventions, analyses and gains are not recomputed"]
    lines = []
    for task, reason in sorted(claim.rescored.unanswered.items()):
        lines += describe_unanswered(task, reason, claim.scale)
    return lines or ["from scores only: their predictions are not committed"]


def _is_of_predictions(outcome: Outcome) -> bool:
    """Whether the values are scores of predictions, not of interventions, analyses or gains."""
    for side in outcome.sides:
        for cell in side.cells:
            selection = cell.selection
            if not selection.is_of_runs or selection.intervention or cell.over:
                return False
    return True
