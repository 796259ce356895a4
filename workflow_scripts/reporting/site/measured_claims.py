"""What the site shows of a claim: its row of claims.csv, both sides by seed, its trainings and their learning curves.

Everything is read from exported files. Nothing is judged again.
"""

import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import MissingFileError, read_csv, read_json
from workflow_scripts.config.analysis_plan import PlannedClaim
from workflow_scripts.config.catalogue import Catalogue, Paper
from workflow_scripts.config.display_schema import TableDisplay, VariantKey
from workflow_scripts.reporting.claims.claim_table import read_claim_table
from workflow_scripts.reporting.claims.verdicts import PRIMARY, VERDICTS
from workflow_scripts.reporting.tables.layout import read_margin

Curves = dict[str, dict[str, list[tuple[int, float]]]]  # name of a value -> run -> (step, value)

# Fields of a claim and their columns of claims.csv.
NUMBERS = {"effect": "effect", "low": "ci_low", "high": "ci_high"}
NUMBERS |= {"smallest": "smallest_effect", "published": "published_effect"}


@dataclass(frozen=True)
class ComparedCell:
    """One cell of a side. `values`: by seed; that of a number without seeds has the seed `""`."""

    side: str
    key: str
    label: str
    published: float | None = None
    values: dict[str, float] = field(default_factory=dict)

    @property
    def mean(self) -> float | None:
        """Mean over the seeds; None without a value."""
        return sum(self.values.values()) / len(self.values) if self.values else None


@dataclass(frozen=True)
class MeasuredClaim:
    """A claim with its numbers, in the claimed direction. `planned`: what the plan says about a primary claim."""

    row: dict[str, str]
    cells: list[ComparedCell]
    trainings: list[dict[str, Any]]
    curves: Curves
    planned: PlannedClaim | None
    margin: float
    effect: float | None
    low: float | None
    high: float | None
    smallest: float | None
    published: float | None

    @property
    def slug(self) -> str:
        """Name of the claim's page."""
        return make_slug(f"{self.row['paper']}-{self.row['claim']}")

    @property
    def kind(self) -> str:
        """The verdict as a class of the style sheet."""
        return make_slug(self.row["verdict"])

    @property
    def is_primary(self) -> bool:
        """Whether the paper's analysis plan names the claim."""
        return self.row["role"] == PRIMARY

    @property
    def seeds(self) -> str:
        """Number of seeds per side: `5`, or `1 of 9` of a primary claim."""
        planned = self.row["n_planned"]
        return f"{self.row['n_seeds'] or 0} of {planned}" if planned else self.row["n_seeds"]

    @property
    def shared_seeds(self) -> list[str]:
        """The seeds that all cells of an exploratory claim have; none of a primary claim, whose plan names them."""
        found = [cell.values.keys() for cell in self.cells if cell.values.keys() - {""}]
        return (
            []
            if self.is_primary or not found
            else sorted(set.intersection(*map(set, found)), key=int)
        )

    @property
    def table(self) -> str:
        """Name of the first table that the claim is about."""
        return self.row["left"].split("/")[0]

    @property
    def reason(self) -> str:
        """Why it has this verdict, as a sentence."""
        if self.is_primary and re.fullmatch(r"\d+ of \d+ seeds", self.row["reason"]):
            return f"{self.seeds} planned seeds are run. No effect is shown before the last one is."
        reason = self.row["reason"]
        return f"{reason[0].upper()}{reason[1:]}." if reason else ""


def make_slug(text: str) -> str:
    """Return the text as an id or a file name."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def read_measured_claims(catalogue: Catalogue, results: Path) -> list[MeasuredClaim]:
    """Read all claims of a folder that `export` wrote, by paper, primary claims first, then by verdict.

    Raises UserError for a missing file, and for a paper that papers/ does not have.
    """
    rows = read_claim_table(results / "claims.csv")
    if unknown := {row["paper"] for row in rows} - catalogue.papers.keys():
        raise UserError(
            f"{results / 'claims.csv'}: no folder papers/{min(unknown)}; export the results again"
        )
    if not (results / "claim_sides.csv").exists():
        raise MissingFileError(results / "claim_sides.csv")
    sides, curves = defaultdict(list), defaultdict(list)
    for line in read_csv(
        results / "claim_sides.csv",
        ("paper", "claim", "side", "cell", "published", "seed", "value"),
    ):
        sides[line["paper"], line["claim"]].append(line)
    runs = {run["run"]: run for run in read_json(results / "provenance.json")}
    for line in read_csv(results / "curves.csv"):
        curves["/".join(line[name] for name in ("task", "method", "variant", "seed"))].append(line)
    found = [_make_claim(row, catalogue.papers[row["paper"]], sides, runs, curves) for row in rows]
    papers = list(catalogue.papers)
    found.sort(
        key=lambda one: (
            papers.index(one.row["paper"]),
            not one.is_primary,
            VERDICTS.index(one.row["verdict"]),
        )
    )
    return found


def _make_claim(
    row: dict[str, str], paper: Paper, sides: dict, runs: dict, curves: dict
) -> MeasuredClaim:
    planned = None
    if row["role"] == PRIMARY:
        planned = next(
            (one for one in paper.list_primary_claims() if one.name == row["claim"]), None
        )
    cells = _make_cells(row, sides[row["paper"], row["claim"]])
    seeds: dict[VariantKey, set[int]] = defaultdict(set)
    for cell in cells:
        # Trainings of other seeds than the planned ones do not belong to a primary claim.
        chosen = planned.seeds if planned else [int(seed) for seed in cell.values if seed]
        for variant in _list_variants(paper, cell.key):
            seeds[variant].update(chosen)
    names = [
        "/".join((*variant, str(seed)))
        for variant, found in seeds.items()
        for seed in sorted(found)
    ]
    found = [runs.get("/seed-".join(name.rsplit("/", 1)), {}) for name in names]
    trainings = [
        run for run in found if run.get("steps")
    ]  # scores of given weights need no training
    of_claim: Curves = defaultdict(dict)
    # The curves of the first planned seeds would show an effect before the last one is run.
    for name in names if int(row["n_seeds"] or 0) >= int(row["n_planned"] or 0) else ():
        for line in curves.get(name, ()):
            of_claim[line["name"]].setdefault(name, []).append(
                (int(line["step"]), float(line["value"]))
            )
    numbers = {
        name: float(row[column]) if row[column] else None for name, column in NUMBERS.items()
    }
    numbers["margin"] = read_margin(row)
    return MeasuredClaim(row, cells, trainings, of_claim, planned, **numbers)


def _make_cells(row: dict[str, str], lines: list[dict[str, str]]) -> list[ComparedCell]:
    """Make the cells of both sides in pairs; those of a claim that is not measured have no values."""
    named = [(side, key) for side in ("left", "right") for key in row[side].split(" + ")]
    values: dict[tuple[str, str], dict] = {
        (side, key): {} for side, key in named if "*" not in key and "/" in key
    }
    published = {}
    for line in lines:
        place = line["side"], line["cell"]
        published[place] = float(line["published"]) if line["published"] else None
        found = values.setdefault(place, {})
        if line["value"]:
            found[line["seed"]] = float(line["value"])
    labels = _shorten_keys([key for _, key in values])
    cells = [
        # The right side of a comparison with a number has the key of the left.
        ComparedCell(
            side,
            key,
            row[side] if "/" not in row[side] else labels[key],
            published.get((side, key)),
            seeds,
        )
        for (side, key), seeds in values.items()
    ]
    left, right = ([cell for cell in cells if cell.side == side] for side in ("left", "right"))
    paired = [cell for pair in zip(left, right, strict=False) for cell in pair]
    return paired if len(paired) == len(cells) else cells


def _shorten_keys(keys: list[str]) -> dict[str, str]:
    """Return key -> its parts that differ between the keys."""
    parts = {key: key.split("/") for key in keys}
    differing = [
        i for i in range(4) if len({part[i] for part in parts.values() if len(part) == 4}) > 1
    ]
    return {key: ", ".join(part[i] for i in differing or (1, 2)) for key, part in parts.items()}


def _list_variants(paper: Paper, key: str) -> list[VariantKey]:
    """List the variants whose runs a cell reads, and those that trained their weights."""
    name, row, column, _ = key.split("/")
    display = paper.displays.get(name)
    if not isinstance(display, TableDisplay):
        return []
    variants: list[VariantKey] = []
    for cell in display.cells:
        if (cell.row, cell.column) == (row, column):
            variants += cell.list_variants()
    trained: list[VariantKey] = []
    for _, method, variant in variants:
        trained_variant, _, task = variant.partition("@")
        if task:  # `ft@paws` is not trained: its weights are those of `ft` on the task `paws`
            trained.append((task, method, trained_variant))
    return variants + trained
