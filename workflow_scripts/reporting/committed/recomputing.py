"""Judge the claims of an export again from its scores, and compare with what is committed."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from workflow_scripts.common.errors import UserError
from workflow_scripts.reporting.claims.claim_rows import ClaimRow, read_claim_rows
from workflow_scripts.reporting.claims.comparison import PRIMARY
from workflow_scripts.reporting.claims.judging import (
    format_claims,
    judge_paper,
    make_claim_row,
    make_side_rows,
)
from workflow_scripts.reporting.claims.outcome import DECIDED, Outcome
from workflow_scripts.reporting.committed.restoring import RestoredExport, list_counted_runs
from workflow_scripts.reporting.pages.verdict_documents import extract_tables, format_documents

CLAIM_KEY = ("paper", "claim")
Content = TypeVar("Content")
CLAIM_NAME = re.compile(r"`([^`/]+/[^`/]+)`$")  # at the end of a statement in a document
SIDE_KEY = ("side", "cell", "seed")  # of a row of claim_sides.csv, within a claim
SIDE_VALUES = ("value", "published")


@dataclass(frozen=True)
class FieldDifference:
    """A field of a claim with another content in a file than what follows from the scores."""

    file: str
    claim: str
    field: str
    committed: str
    recomputed: str

    def __str__(self) -> str:
        is_there = self.committed or "empty"
        return f"{self.field} is {is_there}, by the scores {self.recomputed or 'empty'}"


@dataclass(frozen=True)
class Fault:
    """Something committed that does not follow from the scores.

    name: of a claim, a table, a document or a run. problem: what is wrong, or a field that differs.
    """

    name: str
    problem: str | FieldDifference

    def __str__(self) -> str:
        return f"{self.name}: {self.problem}"

    @property
    def claim(self) -> str:
        """The claim of which a field differs; empty of other faults."""
        if isinstance(self.problem, FieldDifference):
            return self.problem.claim
        return ""


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

    def select_outcomes(self, paper: str, claim: str) -> list[Outcome]:
        """Select the one claim of a paper."""
        return [outcome for outcome in self.outcomes[paper] if outcome.claim.claim == claim]

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
    """Return a fault for each field of a claim, and each value of a side, that differs."""
    claims, sides = format_claims(recomputed.outcomes)
    committed = restored.export.claims
    faults = [*_compare_rows(committed.table, claims), *_compare_sides(committed.sides, sides)]
    names = list(dict.fromkeys(fault.name for fault in faults))
    return sorted(faults, key=lambda fault: names.index(fault.name))


def _compare_rows(file: Path, recomputed: str) -> Iterator[Fault]:
    """Yield a fault for each field of claims.csv that differs."""
    expected = _map_rows(_parse_lines(recomputed))
    is_there = _select_papers(_map_rows(_read_lines(file)), expected)
    for name in dict.fromkeys([*is_there, *expected]):
        if name not in expected:
            yield Fault(name, f"{file.name} has it, papers/ do not")
        elif name not in is_there:
            yield Fault(name, f"{file.name} lacks it")
        else:
            for field, value in _list_expected_fields(expected[name]):
                committed = is_there[name].get(field, "")
                if committed != value:
                    yield Fault(name, FieldDifference(file.name, name, field, committed, value))


def _map_rows(rows: list[dict[str, str]]) -> dict[str, dict[str, str]]:
    """Return `<paper>/<claim>` -> row."""
    return {_name_claim(row): row for row in rows}


def _list_expected_fields(row: dict[str, str]) -> list[tuple[str, str]]:
    """List the columns of a row with their values, the verdict first."""
    return sorted(row.items(), key=lambda item: item[0] != "verdict")


def _compare_sides(file: Path, recomputed: str) -> Iterator[Fault]:
    """Yield a fault for each value of claim_sides.csv that differs."""
    expected = _group_sides(_parse_lines(recomputed))
    is_there = _select_papers(_group_sides(_read_lines(file)), expected)
    for name in dict.fromkeys([*is_there, *expected]):
        values = is_there.get(name, {})
        expected_values = expected.get(name, {})
        for key in dict.fromkeys([*values, *expected_values]):
            value = values.get(key, "missing")
            expected_value = expected_values.get(key, "missing")
            if value != expected_value:
                difference = FieldDifference(
                    file.name, name, _name_place(key), value, expected_value
                )
                yield Fault(name, difference)


def _name_place(key: tuple[str, ...]) -> str:
    """Name a value of a side: `left at seed 104`, or the published number next to it."""
    side, _, seed, column = key
    place = f"{side} at seed {seed}" if seed else side
    return place if column == "value" else f"{column} number of {place}"


def _group_sides(rows: list[dict[str, str]]) -> dict[str, dict[tuple[str, ...], str]]:
    """Return `<paper>/<claim>` -> key of a value -> value."""
    values: dict[str, dict[tuple[str, ...], str]] = {}
    for row in rows:
        key = tuple(row[name] for name in SIDE_KEY)
        of_claim = values.setdefault(_name_claim(row), {})
        for column in SIDE_VALUES:
            of_claim[(*key, column)] = row[column]
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
    """Return a fault for each cell of the tables in README and docs/verdicts.md that is wrong.

    Of claims that were not judged again the rows are not compared.
    """
    papers = restored.catalogue.papers
    are_all = set(list_committed_papers(restored)) <= recomputed.outcomes.keys()
    documents = format_documents(recomputed.rows, papers, restored.scale, costs=None)
    faults = []
    for document, tables in documents.items():
        expected = _read_table_rows(tables)
        text = document.read_text(encoding="utf-8")
        is_there = _read_table_rows(extract_tables(text, str(document)))
        for key in dict.fromkeys([*is_there, *expected]):
            if key in expected:
                faults += _compare_table_row(str(document), key, is_there.get(key), expected[key])
            elif are_all:
                faults.append(Fault(str(document), f"{key}: no claim has this row"))
    return faults


def _compare_table_row(
    document: str, key: str, row: dict[str, str] | None, expected: dict[str, str]
) -> Iterator[Fault]:
    """Yield a fault for each cell of a row that differs, or for a row that is missing."""
    if row is None:
        yield Fault(document, f"{key}: this row is missing")
        return
    claim = CLAIM_NAME.search(key)
    name = claim[1] if claim else ""
    for heading, value in expected.items():
        committed = row.get(heading, "")
        if committed != value:
            field = f"{name or key}: {heading}"
            yield Fault(document, FieldDifference(document, name, field, committed, value))


def _read_table_rows(tables: str) -> dict[str, dict[str, str]]:
    """Return the first cell of each row -> its other cells by their headings.

    Of primary claims the first two cells are the key.
    """
    rows: dict[str, dict[str, str]] = {}
    headings: list[str] = []
    for line in tables.splitlines():
        if not line.startswith("|"):
            headings = []
            continue
        cells = line.strip().removeprefix("| ").removesuffix(" |").split(" | ")
        headings = headings or cells
        n_keys = 1 if cells[0].startswith(("[", "*")) else 2
        rows[": ".join(cells[:n_keys])] = dict(zip(headings[n_keys:], cells[n_keys:], strict=False))
    return rows


def drop_repeated_faults(faults: list[Fault]) -> list[Fault]:
    """Drop the faults of a claim in documents where those in claims.csv say the same."""
    of_claims = {fault.name for fault in faults}
    return [fault for fault in faults if fault.name == fault.claim or fault.claim not in of_claims]


def describe_verdicts(rows: list[ClaimRow]) -> str:
    """Count the verdicts of claims: `3 reproduced, 6 not reproduced, 3 inconclusive`."""
    counts = Counter(row.verdict for row in rows)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in DECIDED)
