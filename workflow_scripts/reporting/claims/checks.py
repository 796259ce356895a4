"""Checks that need no training: SCAN's grammar, and the papers' published numbers."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from workflow_scripts.common.validation import parse_as
from workflow_scripts.config.display_schema import Claim, TableDisplay
from workflow_scripts.config.loading import Catalogue
from workflow_scripts.data.datasets import scan
from workflow_scripts.evaluation.published import read_published
from workflow_scripts.reporting.claims.verdicts import judge_claims
from workflow_scripts.reporting.evidence.evidence import Evidence
from workflow_scripts.reporting.tables.cells import make_cells

SAME, DIFFERS, FINDING = "same", "differs", "finding"
AUDIT = ("recompose", "audit-carma")  # paper and analysis of the printed numbers of CARMA

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
    expected: str
    outcome: str


def digest_pairs(pairs: Iterable[tuple[str, str]]) -> tuple[str, int]:
    """Return (sha256, number of lines) of pairs (command, actions) in any order; repeated pairs count."""
    lines = sorted(f"{command}\t{actions}\n" for command, actions in pairs)
    return hashlib.sha256("".join(lines).encode()).hexdigest(), len(lines)


def verify_grammar() -> list[Check]:
    """Check that the grammar gives the lines of the official training and test files, with the same repetitions."""
    made = dict(zip(("add_jump train", "add_jump test"), scan.make_primitive_split("jump"), strict=True))
    made |= dict(zip(("around_right train", "around_right test"), scan.make_around_right_split(), strict=True))
    checks = []
    for name, (expected, lines) in OFFICIAL.items():
        found, count = digest_pairs((example.source, example.target) for example in made[name])
        outcome = SAME if (found, count) == (expected, lines) else DIFFERS
        said = f"SCAN {name}: the {count:,} lines of the grammar against the official file's {lines:,}"
        checks.append(Check(f"scan {name}", said, found, expected, outcome))
    return checks


def audit_published_numbers(catalogue: Catalogue) -> list[Check]:
    """Compare the published numbers of the papers with each other and with their own claims."""
    # pandas and scipy's distributions, which no other check needs.
    from workflow_scripts.analyses import audit

    paper, name = AUDIT
    entry = catalogue.papers[paper].analyses[name]
    numbers = read_published(catalogue.root / "papers" / entry["published"] / "published.csv")
    rows = audit.analyse(numbers, entry["options"]).scores
    scores = {
        (row["task"], row["metric"], row.get("subset", "all")): row["value"] for row in rows if row.get("rate") is None
    }
    low, high = audit.compute_null_interval(entry["options"]["runs"])
    ratios, inside = (int(scores["all", f"cv_ratio_{part}", "all"]) for part in ("count", "inside"))
    compared, differing = (
        sum(int(value) for (_, metric, _), value in scores.items() if metric == f"pairs_{part}")
        for part in ("compared", "differing")
    )
    claims = [outcome.printed for key in catalogue.papers for outcome in judge_published_numbers(catalogue, key)]
    contradicted = claims.count("contradict")
    with_numbers = contradicted + claims.count("agree")
    said = [
        (
            "carma spread",
            f"CARMA prints {ratios} pairs of spreads over synonyms; the ratio of {inside} is within what two equal "
            f"models give by chance ({low:.2f} to {high:.2f})",
            f"{inside} of {ratios}",
        ),
        (
            "carma printed twice",
            f"CARMA prints {compared} numbers in two places; {differing} of them differ",
            f"{differing} of {compared}",
        ),
        (
            "claims against printed numbers",
            f"Of {with_numbers} claims of the papers with printed numbers, the numbers contradict {contradicted}",
            f"{contradicted} of {with_numbers}",
        ),
    ]
    return [Check(check, statement, found, "", FINDING) for check, statement, found in said]


def judge_published_numbers(catalogue: Catalogue, key: str) -> list:
    """Judge the claims of a paper (not our controls) by its published numbers alone."""
    paper, file = catalogue.papers[key], f"papers/{key}/claims.yaml"
    evidence = Evidence(key, "", read_published(catalogue.root / "papers" / key / "published.csv"), {}, {})
    cells = {}
    for name, content in paper.displays.items():
        if content["kind"] == "table":
            display = parse_as(TableDisplay, content, f"papers/{key}/displays.yaml", name)
            cells |= {cell.key: cell for cell in make_cells(name, display, evidence)}
    claims = [parse_as(Claim, entry, file, str(i)) for i, entry in enumerate(paper.claims)]
    scale = paper.plan.scale if paper.plan else ""
    return judge_claims([claim for claim in claims if claim.kind == "paper"], cells, False, scale, file, paper.plan)
