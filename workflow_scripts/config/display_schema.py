"""Schemas of displays.yaml and claims.yaml."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from workflow_scripts.common.validation import StrictModel
from workflow_scripts.data.sources.declared import SourceName

Label = Annotated[str, Field(pattern=r"^[^/|\n]+$", description="Part of a cell's key, so without '/'.")]
Relation = Literal["greater", "less", "no_gain", "falls_with"]
Measure = Literal["difference", "log_ratio", "log_odds", "superiority", "success_rate"]

SIDES = ("left", "right", "floor", "published")  # keys of a claim that name cells

# Columns of scores.csv that a cell may fix, besides task, method, variant and metric.
SELECTORS = ("split", "subset", "intervention", "layer", "pooling", "rate", "intervention_seed", "item_set", "readout")


class Selection(StrictModel):
    """A row or a column of a table. Both together select the score of a cell; the row overrides the column."""

    group: str | None = Field(None, description="Heading above neighbouring rows.")
    task: str | None = None
    method: str | None = None
    variant: str | dict[str, str] | None = Field(None, description="One variant, or one for each task.")
    weights: str | None = Field(None, description="Given weights, as in experiments.yaml: a task, or `start`.")
    metric: str | None = None
    unit: str | None = None
    decimals: int = Field(2, ge=0, le=6, description="Digits after the point of our numbers.")
    analysis: str | None = Field(None, description="Take the score from this analysis, not from the runs.")
    over: str | None = Field(
        None,
        description="Show the gain over this variant of the same method and task, by seed; `<variant>@<weights>` has "
        "given weights.",
    )
    relative: bool = Field(False, description="With `over`: the gain in percent of that variant's score.")
    split: str | None = None
    subset: str | None = None
    intervention: str | None = None
    layer: int | str | None = Field(
        None, description="Index of the block, or '25%': the measured one nearest to that part of the deepest measured."
    )
    pooling: str | None = None
    rate: float | None = None
    intervention_seed: int | None = None
    item_set: str | None = None
    readout: str | None = None


class Row(Selection):
    """A row of a table."""

    row: Label


class Column(Selection):
    """A column of a table."""

    column: Label


class TableDisplay(StrictModel):
    """A table of the paper, or one of ours."""

    kind: Literal["table"]
    source: str = Field(description="Its place in the paper.")
    title: str
    group: str = Field(description="Sub-category in the report.")
    note: str | None = None
    baseline: Label | None = Field(None, description="Row that the others are tested against, over examples.")
    transposed: bool = Field(False, description="Print columns downwards.")
    rows: list[Row] = Field(min_length=1)
    columns: list[Column] = Field(min_length=1)

    @model_validator(mode="after")
    def _baseline_is_a_row(self) -> Self:
        if self.baseline and self.baseline not in [row.row for row in self.rows]:
            raise ValueError(f"`baseline` names '{self.baseline}', which is none of its rows")
        return self


class VariantRuns(StrictModel):
    """Every requested seed of a variant, and how a figure shows them."""

    method: str
    variant: str
    weights: str | None = Field(None, description="Given weights, as in experiments.yaml: a task, or `start`.")
    intervention: str | None = Field(None, description="Scores of this intervention on these runs are shown.")
    panel: str | None = Field(None, description="Heading of the panel of a figure that shows these runs.")
    series: str | None = Field(None, description="Name of these runs in a legend, or of a model in an analysis.")
    readout: str | None = Field(None, description="Readout of the scores that are shown.")


class Runs(VariantRuns):
    """Every requested seed of one variant on one task."""

    task: str


class AnalysedRuns(VariantRuns):
    """Every requested seed of one variant on one or several tasks."""

    task: str | list[str]


class FigureDisplay(StrictModel):
    """A figure that `module` draws from analyses of the same paper and from scores of `runs`."""

    kind: Literal["figure"]
    source: str = Field(description="Its place in the paper.")
    title: str
    group: str = Field(description="Sub-category in the report.")
    note: str | None = None
    module: str = Field(description="Module of workflow_scripts/reporting/figures.")
    analyses: list[str] = []
    runs: list[Runs] = []
    curves: bool = Field(False, description="The module reads the training.csv of the runs, too.")
    options: dict[str, Any] = {}


class Analysis(StrictModel):
    """An analysis that `module` computes from the checkpoints of `runs`, or from published numbers of a paper."""

    module: str = Field(description="Module of workflow_scripts/analyses.")
    runs: list[AnalysedRuns] = []
    published: str | None = Field(None, description="Folder of papers/ whose published.csv is analysed.")
    sources: list[SourceName] = Field([], description="<dataset>/<file> that the module reads in addition to the runs.")
    scored: bool = Field(False, description="The module reads the evaluations of the runs, too.")
    options: dict[str, Any] = {}

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if bool(self.runs) == bool(self.published):
            raise ValueError("an analysis has either `runs` or `published`")
        return self


class Claim(StrictModel):
    """A claim as a comparison of cells `<display>/<row>/<column>/<metric>` with each other or with a number.

    The effect is in the claimed direction: `greater`: left - right; `less` and `no_gain`: right - left; `falls_with`:
    -(Kendall's tau) of left and right along the cells that `*` matches. The margin that it must exceed is
    `at_least`, of `no_gain` -at_least: a gain of left over right of up to so much counts as none.

    Lists of cells on both sides, of one length, are compared pair by pair; the effect of a seed is the mean over the
    pairs. `measure`: `difference`; `log_ratio`, ln(left / right) where `greater` has left - right; `log_odds`, the
    logarithm of the odds of left over those of right, of percentages; `superiority`, the chance that a seed of left is
    above one of right, 0.5 if both are alike; `success_rate`, the share of left's seeds above the threshold of the
    analysis plan, less that of right's.
    """

    claim: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")]
    kind: Literal["paper", "control"] = Field(
        "paper", description="`control`: of ours, not of the paper; counted apart."
    )
    statement: str
    quote: str | None = Field(None, description="The paper's words, verbatim.")
    source: str
    caveat: str | None = Field(None, description="What a reader must know to take the verdict rightly.")
    left: str | Annotated[list[str], Field(min_length=2)]
    right: str | float | Annotated[list[str], Field(min_length=2)]
    relation: Relation
    measure: Measure = "difference"
    at_least: float = Field(0.0, ge=0)
    unit: str
    given: str | None = Field(
        None, description="Claim of the paper that must be reproduced, too: a gain, before its absence says anything."
    )
    floor: float | str | None = Field(
        None, description="A number or a cell: there is no verdict unless the better side lies above it."
    )
    published: str | None = Field(
        None, description="The cell whose printed number is the effect, where the paper does not print both sides."
    )

    @model_validator(mode="after")
    def _trend_is_of_cells(self) -> Self:
        if self.relation == "falls_with" and not (isinstance(self.left, str) and isinstance(self.right, str)):
            raise ValueError("`falls_with` is about two rows of cells, not about lists or a number")
        lists = [side for side in (self.left, self.right) if isinstance(side, list)]
        if len(lists) == 1 or len(set(map(len, lists))) > 1:
            raise ValueError("`left` and `right` are lists of one length, or neither is a list")
        if self.measure != "difference" and self.relation not in ("greater", "less"):
            raise ValueError(f"measure {self.measure} goes with the relations greater and less")
        if self.measure in ("success_rate", "superiority") and not list_cells(self.right):
            raise ValueError(f"measure {self.measure} compares the seeds of two cells, not those of one with a number")
        return self


def list_claim_cells(claim: dict[str, Any]) -> list[str]:
    """Return the cells that a claim of claims.yaml names."""
    return [cell for side in SIDES for cell in list_cells(claim.get(side))]


def list_cells(side: str | float | list[str] | None) -> list[str]:
    """Return the cells that a side of a claim names; none if it is a number."""
    return side if isinstance(side, list) else [side] if isinstance(side, str) else []


def match_stars(pattern: str, cell: str) -> list[str] | None:
    """Match the key of a cell with a side of a claim: the text for each `*`, or None if they do not match."""
    parts, names = pattern.split("/"), cell.split("/")
    if len(parts) != len(names) or any(part not in ("*", name) for part, name in zip(parts, names, strict=True)):
        return None
    return [name for part, name in zip(parts, names, strict=True) if part == "*"]


def list_table_cells(display: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the cells of a table, each a column with what the row has over it; none of a figure."""
    return [column | row for row in display.get("rows", ()) for column in display.get("columns", ())]


def name_cell(display: str, cell: dict[str, Any]) -> str:
    """Return the key of a cell (column | row): `<display>/<row>/<column>/<metric>`."""
    return f"{display}/{cell['row']}/{cell['column']}/{cell.get('metric')}"


def name_variant(cell: dict[str, Any]) -> str | None:
    """Return the variant of a cell or an entry of `runs`, with `@<weights>` if it names given weights."""
    variant = cell.get("variant")
    variant = variant.get(cell.get("task")) if isinstance(variant, dict) else variant
    return f"{variant}@{cell['weights']}" if variant and cell.get("weights") else variant


def list_cell_variants(cell: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return the (task, method, variant) whose runs a cell (column | row) reads: its own, and the baseline of a gain.

    The list is empty for a cell that an analysis computes.
    """
    if "method" not in cell or "task" not in cell:
        return []
    variant = name_variant(cell)
    names = [name for name in (variant, cell.get("over")) if name] if variant else []
    return [(cell["task"], cell["method"], name) for name in names]


def list_display_analyses(display: dict) -> list[str]:
    """Return the names of the analyses that an entry of displays.yaml reads."""
    cells = [*display.get("rows", ()), *display.get("columns", ())]
    named = [*display.get("analyses", ()), *(cell["analysis"] for cell in cells if "analysis" in cell)]
    return list(dict.fromkeys(named))
