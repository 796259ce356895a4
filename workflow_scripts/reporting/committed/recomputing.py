"""Judge the claims of an export again from its scores, and compare with what is committed."""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from workflow_scripts.common.errors import UserError
from workflow_scripts.reporting.claims.claim_rows import ClaimRow, read_claim_rows
from workflow_scripts.reporting.claims.effects import Outcome
from workflow_scripts.reporting.claims.judging import (
    format_claims,
    judge_paper,
    make_claim_row,
    make_side_rows,
)
from workflow_scripts.reporting.claims.verdicts import DECIDED, PRIMARY
from workflow_scripts.reporting.committed.restoring import RestoredExport, list_counted_runs
from workflow_scripts.reporting.pages.verdict_documents import extract_tables, format_documents

CLAIM_KEY = ("paper", "claim")
Content = TypeVar("Content")
SIDE_KEY = ("side", "cell", "seed")  # of a value, within a claim


@dataclass(frozen=True)
class Fault:
    """A difference between what is committed and what follows from the scores.

    name: of a claim, a table or a run. text: what differs.
    """

    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.name}: {self.text}"


@dataclass(frozen=True)
class RecomputedClaims:
    """The claims of an export, judged from its scores. outcomes: by paper."""

    outcomes: dict[str, list[Outcome]]

    @cached_property
    def rows(self) -> list[ClaimRow]:
        """The rows of claims.csv."""
        rows: list[ClaimRow] = []
        for paper, outcomes in self.outcomes.items():
            rows += [make_claim_row(paper, outcome) for outcome in outcomes]
        return rows

    @property
    def decided(self) -> list[ClaimRow]:
        """The primary claims whose planned seeds are all there."""
        return [row for row in self.rows if row.is_primary and row.verdict in DECIDED]

    @property
    def waiting(self) -> list[ClaimRow]:
        """The other primary claims."""
        return [row for row in self.rows if row.is_primary and row.verdict not in DECIDED]

    @property
    def decided_outcomes(self) -> list[tuple[str, Outcome]]:
        """The decided primary claims, each with its paper."""
        decided = {(row.paper, row.claim) for row in self.decided}
        pairs = []
        for paper, outcomes in self.outcomes.items():
            for outcome in outcomes:
                if (paper, outcome.claim.claim) in decided:
                    pairs.append((paper, outcome))
        return pairs

    def count_scores(self) -> int:
        """Return how many scores, by cell and seed, the decided primary claims compare."""
        scores: set[tuple[str, str, int]] = set()
        for paper, outcome in self.decided_outcomes:
            for side in make_side_rows(paper, outcome):
                if side.seed is not None:
                    scores.add((paper, side.cell, side.seed))
        return len(scores)


def recompute_claims(
    restored: RestoredExport, papers: Iterable[str] | None = None
) -> RecomputedClaims:
    """Judge the claims of these papers, or of all in an export, from its scores."""
    outcomes: dict[str, list[Outcome]] = {}
    for paper in papers or list_committed_papers(restored):
        counted = list_counted_runs(restored, paper)
        results = restored.get_paper_results(paper)
        primary = judge_paper(results, counted.primary)
        others = primary
        if counted.others != counted.primary:
            others = judge_paper(results, counted.others)
        outcomes[paper] = []
        for of_planned, of_counted in zip(primary, others, strict=True):
            outcome = of_counted
            if of_planned.role == PRIMARY:
                outcome = of_planned
            outcomes[paper].append(outcome)
    return RecomputedClaims(outcomes)


def list_committed_papers(restored: RestoredExport) -> list[str]:
    """Return the papers of an export's claims.csv. Raises UserError for one that is not here."""
    file = restored.export.claims.table
    papers = list(dict.fromkeys(row.paper for row in read_claim_rows(file)))
    for paper in papers:
        if paper not in restored.catalogue.papers:
            raise UserError(f"{file}: no folder papers/{paper}; add it, or remove its claims")
    return papers


def find_claim_faults(restored: RestoredExport, recomputed: RecomputedClaims) -> list[Fault]:
    """Return a fault for each claim whose row or whose sides in the export differ."""
    claims, sides = format_claims(recomputed.outcomes)
    committed = restored.export.claims
    differences: dict[str, list[str]] = {}
    for name, text in _compare_rows(committed.table, claims):
        differences.setdefault(name, []).append(text)
    for name, text in _compare_sides(committed.sides, sides):
        differences.setdefault(name, []).append(text)
    return [Fault(name, "; ".join(texts)) for name, texts in differences.items()]


def _compare_rows(file: Path, recomputed: str) -> Iterator[tuple[str, str]]:
    """Yield (claim, difference) for claims.csv; one difference for each claim."""
    expected = _map_rows(_parse_lines(recomputed))
    is_there = _select_papers(_map_rows(_read_lines(file)), expected)
    for name in dict.fromkeys([*is_there, *expected]):
        if name not in expected:
            yield name, f"{file.name} has it, papers/ do not"
        elif name not in is_there:
            yield name, f"{file.name} lacks it"
        else:
            texts = _list_differences(is_there[name], expected[name])
            if texts:
                yield name, ", ".join(texts)


def _map_rows(rows: list[dict[str, str]]) -> dict[str, dict[str, str]]:
    """Return `<paper>/<claim>` -> row."""
    return {_name_claim(row): row for row in rows}


def _list_differences(row: dict[str, str], expected: dict[str, str]) -> list[str]:
    """Say how the columns of a row differ, the verdict first."""
    names = sorted(expected, key=lambda name: name != "verdict")
    texts = []
    for name in names:
        value = row.get(name, "")
        if value != expected[name]:
            texts.append(f"{name} is {value or 'empty'}, by the scores {expected[name] or 'empty'}")
    return texts


def _compare_sides(file: Path, recomputed: str) -> Iterator[tuple[str, str]]:
    """Yield (claim, difference) for claim_sides.csv; the first difference of each claim."""
    expected = _group_sides(_parse_lines(recomputed))
    is_there = _select_papers(_group_sides(_read_lines(file)), expected)
    for name in dict.fromkeys([*is_there, *expected]):
        values = is_there.get(name, {})
        expected_values = expected.get(name, {})
        for key in dict.fromkeys([*values, *expected_values]):
            value = values.get(key, "missing")
            expected_value = expected_values.get(key, "missing")
            if value != expected_value:
                side, _, seed = key
                place = f"{side} at seed {seed}" if seed else side
                yield name, f"{file.name}: {place} is {value}, by the scores {expected_value}"
                break


def _group_sides(rows: list[dict[str, str]]) -> dict[str, dict[tuple[str, ...], str]]:
    """Return `<paper>/<claim>` -> key of a value -> value."""
    values: dict[str, dict[tuple[str, ...], str]] = {}
    for row in rows:
        key = tuple(row[name] for name in SIDE_KEY)
        values.setdefault(_name_claim(row), {})[key] = row["value"]
    return values


def _select_papers(committed: dict[str, Content], expected: Iterable[str]) -> dict[str, Content]:
    """Select the claims of the papers that were judged again."""
    papers = {name.split("/")[0] for name in expected}
    return {name: row for name, row in committed.items() if name.split("/")[0] in papers}


def _name_claim(row: dict[str, str]) -> str:
    return "/".join(row[name] for name in CLAIM_KEY)


def _read_lines(file: Path) -> list[dict[str, str]]:
    return _parse_lines(file.read_text(encoding="utf-8"))


def _parse_lines(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def find_document_faults(restored: RestoredExport, recomputed: RecomputedClaims) -> list[Fault]:
    """Return a fault for each row of the tables in README and docs/verdicts.md that is wrong."""
    papers = restored.catalogue.papers
    documents = format_documents(recomputed.rows, papers, restored.scale, costs=None)
    faults = []
    for document, tables in documents.items():
        expected = _map_table_rows(tables)
        text = document.read_text(encoding="utf-8")
        is_there = _map_table_rows(extract_tables(text, str(document)))
        for key in dict.fromkeys([*is_there, *expected]):
            if key not in expected:
                faults.append(Fault(str(document), f"{key}: no claim has this row"))
            elif key not in is_there:
                faults.append(Fault(str(document), f"{key}: this row is missing"))
            elif is_there[key] != expected[key]:
                cells = f"is {is_there[key]}, by the scores {expected[key]}"
                faults.append(Fault(str(document), f"{key} {cells}"))
    return faults


def _map_table_rows(tables: str) -> dict[str, str]:
    """Return the first cell of each row -> its other cells; of primary claims, the first two."""
    rows: dict[str, str] = {}
    for line in tables.splitlines():
        if not line.startswith("|"):
            continue
        cells = line.strip("| ").split(" | ")
        n_keys = 1 if cells[0].startswith(("[", "*")) else 2
        rows[": ".join(cells[:n_keys])] = " | ".join(cells[n_keys:])
    return rows


def describe_verdicts(rows: list[ClaimRow]) -> str:
    """Count the verdicts of claims: `3 reproduced, 6 not reproduced, 3 inconclusive`."""
    counts = Counter(row.verdict for row in rows)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in DECIDED)
