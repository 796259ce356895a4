"""Checks that need no training: SCAN's grammar, and the papers' published numbers."""

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.data.datasets import scan
from workflow_scripts.evaluation.published import read_published
from workflow_scripts.reporting.claims.effects import Outcome
from workflow_scripts.reporting.claims.judging import make_claim_cells, parse_claims
from workflow_scripts.reporting.claims.verdicts import judge_claims
from workflow_scripts.reporting.evidence.evidence import Evidence

SAME, DIFFERS, FINDING = "same", "differs", "finding"

# sha256 over the lines "command<TAB>actions" of the official files, sorted, repeated lines included, and their number.
OFFICIAL = {
    "add_jump train": ("84c912b45efb8c2a6077367f7d00a8f66003253cef25fbcbbeb377888d9a31dd", 14670),
    "add_jump test": ("ae1617c56a64dc37f45d104457ce7a214d124439bcddc97bea0af0f7b5e7491b", 7706),
    "around_right train": ("1545158ce594fe8fe9d2e3e77e208bc71e34e40f60890b813894e63621707cf5", 15225),
    "around_right test": ("cceb9031e0b1a652aa2e4e4205440ba01cf9e3bfc6e979cd91e4aa7799ed3698", 4476),
}


@dataclass(frozen=True)
class Check:
    """A check: what was found and expected, and the outcome (same, differs, or a finding without expectation)."""

    check: str
    statement: str
    found: str
    expected: str = ""
    outcome: str = FINDING


def digest_pairs(pairs: Iterable[tuple[str, str]]) -> tuple[str, int]:
    """Return (sha256, number of lines) of pairs (command, actions) in any order; repeated pairs count."""
    lines = sorted(f"{command}\t{actions}\n" for command, actions in pairs)
    return hashlib.sha256("".join(lines).encode()).hexdigest(), len(lines)


def verify_grammar() -> list[Check]:
    """Check that the grammar gives the lines of the official training and test files, with the same repetitions."""
    made = (*scan.split_commands("jump"), *scan.split_commands("around right"))
    checks = []
    for (name, (expected, lines)), examples in zip(OFFICIAL.items(), made, strict=True):
        found, count = digest_pairs((example.source, example.target) for example in examples)
        outcome = SAME if (found, count) == (expected, lines) else DIFFERS
        statement = f"SCAN {name}: the {count:,} lines of the grammar against the official file's {lines:,}"
        checks.append(Check(f"scan {name}", statement, found, expected, outcome))
    return checks


def audit_published_numbers(catalogue: Catalogue) -> list[Check]:
    """Compare the published numbers of the papers with each other and with their own claims."""
    # pandas and scipy's distributions, which no other check needs.
    from workflow_scripts.analyses import audit

    entry = catalogue.papers["recompose"].analyses["audit-carma"]
    numbers = read_published(catalogue.root / "papers" / entry["published"] / "published.csv")
    totals = Counter()
    for row in audit.analyse(numbers, entry["options"]).scores:
        if row["task"] == "all" and row.get("rate") is None:
            totals[row["metric"]] += row["value"]
    metrics = ("cv_ratio_count", "cv_ratio_inside", "pairs_compared", "pairs_differing")
    ratios, inside, compared, differing = (int(totals[metric]) for metric in metrics)
    low, high = audit.compute_null_interval(entry["options"]["runs"])
    claims = [outcome.printed for key in catalogue.papers for outcome in judge_published_numbers(catalogue, key)]
    contradicted = claims.count("contradict")
    with_numbers = contradicted + claims.count("agree")
    spread = f"CARMA prints {ratios} pairs of spreads over synonyms; the ratio of {inside} is within what two equal "
    spread += f"models give by chance ({low:.2f} to {high:.2f})"
    twice = f"CARMA prints {compared} numbers in two places; {differing} of them differ"
    against = f"Of {with_numbers} claims of the papers with printed numbers, the numbers contradict {contradicted}"
    return [
        Check("carma spread", spread, f"{inside} of {ratios}"),
        Check("carma printed twice", twice, f"{differing} of {compared}"),
        Check("claims against printed numbers", against, f"{contradicted} of {with_numbers}"),
    ]


def judge_published_numbers(catalogue: Catalogue, key: str) -> list[Outcome]:
    """Judge the claims of a paper (not our controls) by its published numbers alone."""
    paper = catalogue.papers[key]
    evidence = Evidence(key, "", read_published(catalogue.root / "papers" / key / "published.csv"), {}, {})
    tables = [name for name, entry in paper.displays.items() if entry["kind"] == "table"]
    cells = make_claim_cells(paper, evidence, tables)
    claims = [claim for claim in parse_claims(paper, key) if claim.kind == "paper"]
    scale = paper.plan.scale if paper.plan else ""
    return judge_claims(claims, cells, False, scale, f"papers/{key}/claims.yaml", paper.plan)
