"""The models of displays.yaml and claims.yaml, with their axes written out.

They tell which cells and runs an entry names.
"""

from collections.abc import Iterable
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PlainSerializer, model_validator

from workflow_scripts.common.run_names import VariantKey, name_weights
from workflow_scripts.common.validation import StrictModel
from workflow_scripts.data.sources.declared import SourceName

Label = Annotated[
    str, Field(pattern=r"^[^/|\n]+$", description="Part of a cell's key, so without '/'.")
]
Source = Annotated[str, Field(description="Its place in the paper.")]
Group = Annotated[str, Field(description="Sub-category in the report.")]
Relation = Literal["greater", "less", "no_gain", "falls_with"]
Measure = Literal["difference", "log_ratio", "log_odds", "superiority", "success_rate"]

NULLS: dict[Measure, float] = {"superiority": 0.5}  # effects of equal sides; 0 of other measures
SIDES = ("left", "right", "floor", "published")  # keys of a claim that name cells

# Columns of scores.csv that a cell may fix, besides task, method, variant and metric.
SELECTORS = (
    "split",
    "subset",
    "intervention",
    "layer",
    "pooling",
    "rate",
    "intervention_seed",
    "item_set",
    "readout",
)


def write_number(number: float) -> int | float:
    """Return a number as the files have it: 5, not 5.0."""
    if number.is_integer():
        return int(number)
    return number


Number = Annotated[float, PlainSerializer(write_number)]


class FileEntry(StrictModel):
    """An entry of displays.yaml or claims.yaml."""

    def make_json(self) -> dict[str, Any]:
        """Return what the file says of the entry, with axes written out and without defaults."""
        return self.model_dump(mode="json", exclude_unset=True)


class Selection(StrictModel):
    """A row or column of a table. Both together select a score; the row overrides the column."""

    group: str | None = Field(None, description="Heading above neighbouring rows.")
    task: str | None = None
    method: str | None = None
    variant: str | dict[str, str] | None = Field(
        None, description="One variant, or one for each task."
    )
    weights: str | None = Field(
        None, description="Given weights, as in experiments.yaml: a task, or `start`."
    )
    metric: str | None = None
    unit: str | None = None
    decimals: int = Field(2, ge=0, le=6, description="Digits after the point of our numbers.")
    analysis: str | None = Field(
        None, description="Take the score from this analysis, not from the runs."
    )
    over: str | None = Field(
        None,
        description="Show the gain over this variant of the same method and task, by seed; "
        "`<variant>@<weights>` has given weights.",
    )
    relative: bool = Field(
        False, description="With `over`: the gain in percent of that variant's score."
    )
    split: str | None = None
    subset: str | None = None
    intervention: str | None = None
    layer: int | str | None = Field(
        None,
        description="Index of the block, or '25%': the measured one nearest to that part of the "
        "deepest measured.",
    )
    pooling: str | None = None
    rate: Number | None = None
    intervention_seed: int | None = None
    item_set: str | None = None
    readout: str | None = None


class Row(Selection):
    """A row of a table."""

    row: Label


class Column(Selection):
    """A column of a table."""

    column: Label


class TableCell(Selection):
    """A cell of a table: its column, with what the row has over it."""

    row: Label
    column: Label

    @property
    def variant_name(self) -> str | None:
        """The variant on the cell's task, with `@<weights>` if the cell has given weights."""
        variant = self.variant
        if isinstance(variant, dict):
            variant = variant.get(self.task or "")
        if not variant:
            return None
        return name_weights(variant, self.weights)

    @property
    def variant_key(self) -> VariantKey | None:
        """The variant whose runs the cell shows; None of a cell that an analysis computes."""
        variant = self.variant_name
        if self.task is None or self.method is None or variant is None:
            return None
        return VariantKey(self.task, self.method, variant)

    def list_variants(self) -> list[VariantKey]:
        """Return the variants whose runs the cell reads.

        These are its own, and the variant over which it shows the gain. The list is empty for a
        cell that an analysis computes as a whole.
        """
        variant = self.variant_key
        if variant is None:
            return []
        if self.over is None:
            return [variant]
        return [variant, variant._replace(variant=self.over)]

    def make_key(self, display: str) -> str:
        """Return the key of the cell in a display: `<display>/<row>/<column>/<metric>`."""
        return f"{display}/{self.row}/{self.column}/{self.metric}"


class TableDisplay(FileEntry):
    """A table of the paper, or one of ours."""

    kind: Literal["table"]
    source: Source
    title: str
    group: Group
    note: str | None = None
    baseline: Label | None = Field(
        None, description="Row that the others are tested against, over examples."
    )
    transposed: bool = Field(False, description="Print columns downwards.")
    rows: list[Row] = Field(min_length=1)
    columns: list[Column] = Field(min_length=1)

    @model_validator(mode="after")
    def _baseline_is_a_row(self) -> Self:
        if self.baseline and self.baseline not in [row.row for row in self.rows]:
            raise ValueError(f"`baseline` names '{self.baseline}', which is none of its rows")
        return self

    @cached_property
    def cells(self) -> list[TableCell]:
        """The cells, row by row."""
        cells = []
        templates = [TableCell.model_construct(**_get_set_values(part)) for part in self.columns]
        for row in self.rows:
            # Both are validated, and the row wins.
            values = _get_set_values(row)
            cells += [template.model_copy(update=values) for template in templates]
        return cells

    @cached_property
    def variants(self) -> frozenset[VariantKey]:
        """The variants whose scores the table shows, without those that its analyses read."""
        return frozenset(variant for variant, _ in self.list_run_cells())

    @property
    def intervened_variants(self) -> frozenset[VariantKey]:
        """Those whose scores under an intervention the table shows."""
        return frozenset(variant for variant, cell in self.list_run_cells() if cell.intervention)

    @property
    def reads_curves(self) -> bool:
        """Whether the training.csv of the runs is read, too."""
        return False

    def list_run_cells(self) -> list[tuple[VariantKey, TableCell]]:
        """Return (variant, cell) for each cell that shows runs, not an analysis."""
        run_cells = []
        for cell in self.cells:
            if cell.analysis is None:
                run_cells += [(variant, cell) for variant in cell.list_variants()]
        return run_cells

    def list_analyses(self) -> list[str]:
        """Return the names of the analyses that the table reads."""
        names = [part.analysis for part in (*self.rows, *self.columns) if part.analysis is not None]
        return list(dict.fromkeys(names))


def _get_set_values(part: Row | Column) -> dict[str, Any]:
    """Return what the file says of a row or a column, without defaults."""
    return {name: getattr(part, name) for name in part.model_fields_set}


class ShownRuns(StrictModel):
    """How a figure or an analysis shows some runs."""

    weights: str | None = Field(
        None, description="Given weights, as in experiments.yaml: a task, or `start`."
    )
    intervention: str | None = Field(
        None, description="Scores of this intervention on these runs are shown."
    )
    panel: str = Field("", description="Heading of the panel of a figure that shows these runs.")
    series: str = Field(
        "", description="Name of these runs in a legend, or of a model in an analysis."
    )
    readout: str | None = Field(None, description="Readout of the scores that are shown.")


class Runs(ShownRuns):
    """Every requested seed of one variant on one task."""

    method: str
    variant: str
    task: str

    @property
    def variant_key(self) -> VariantKey:
        """The variant."""
        return VariantKey(self.task, self.method, self.variant)

    def list_variants(self) -> list[VariantKey]:
        """Return the one variant."""
        return [self.variant_key]


class AnalysedRuns(ShownRuns):
    """Every requested seed of one variant on one or several tasks."""

    method: str
    variant: str
    task: str | list[str]

    def list_variants(self) -> list[VariantKey]:
        """Return the variant on each of the tasks."""
        tasks = self.task
        if isinstance(tasks, str):
            tasks = [tasks]
        return [VariantKey(task, self.method, self.variant) for task in tasks]


def _list_variants(runs: Iterable[Runs | AnalysedRuns]) -> frozenset[VariantKey]:
    variants: set[VariantKey] = set()
    for entry in runs:
        variants.update(entry.list_variants())
    return frozenset(variants)


class FigureDisplay(FileEntry):
    """A figure that `module` draws from analyses of the same paper and from scores of `runs`."""

    kind: Literal["figure"]
    source: Source
    title: str
    group: Group
    note: str | None = None
    module: str = Field(description="Module of workflow_scripts/reporting/figures.")
    analyses: list[str] = []
    runs: list[Runs] = []
    curves: bool = Field(False, description="The module reads the training.csv of the runs, too.")
    options: dict[str, Any] = {}

    @cached_property
    def variants(self) -> frozenset[VariantKey]:
        """The variants whose scores the figure shows, without those that its analyses read."""
        return _list_variants(self.runs)

    @property
    def intervened_variants(self) -> frozenset[VariantKey]:
        """Those whose scores under an intervention the figure shows."""
        return _list_variants(entry for entry in self.runs if entry.intervention)

    @property
    def reads_curves(self) -> bool:
        """Whether the training.csv of the runs is read, too."""
        return self.curves

    def list_analyses(self) -> list[str]:
        """Return the names of the analyses that the figure reads."""
        return list(dict.fromkeys(self.analyses))


Display = TableDisplay | FigureDisplay


class Analysis(FileEntry):
    """An analysis that `module` computes from checkpoints of `runs`, or from published numbers."""

    module: str = Field(description="Module of workflow_scripts/analyses.")
    runs: list[AnalysedRuns] = []
    published: str | None = Field(
        None, description="Folder of papers/ whose published.csv is analysed."
    )
    sources: list[SourceName] = Field(
        [], description="<dataset>/<file> that the module reads in addition to the runs."
    )
    scored: bool = Field(False, description="The module reads the evaluations of the runs, too.")
    options: dict[str, Any] = {}

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if bool(self.runs) == bool(self.published):
            raise ValueError("an analysis has either `runs` or `published`")
        return self

    @cached_property
    def variants(self) -> frozenset[VariantKey]:
        """The variants that are analysed."""
        return _list_variants(self.runs)

    @property
    def intervened_variants(self) -> frozenset[VariantKey]:
        """Those whose scores under an intervention are analysed."""
        return _list_variants(entry for entry in self.runs if entry.intervention)


class ClaimOptions(FileEntry):
    """The keys of a claim that may be left out."""

    kind: Literal["paper", "control"] = Field(
        "paper", description="`control`: of ours, not of the paper; counted apart."
    )
    quote: str | None = Field(None, description="The paper's words, verbatim.")
    caveat: str | None = Field(
        None, description="What a reader must know to take the verdict rightly."
    )
    measure: Measure = "difference"
    at_least: Number | None = Field(
        None,
        ge=0,
        description="The margin. Without it that of equal sides: 0, and 0.5 of `superiority`.",
    )
    given: str | None = Field(
        None,
        description="Claim of the paper that must be reproduced, too: a gain, before its absence "
        "says anything.",
    )
    floor: Number | str | None = Field(
        None,
        description="A number or a cell: there is no verdict unless the better side lies above it.",
    )
    published: str | None = Field(
        None,
        description="The cell whose printed number is the effect, where the paper does not print "
        "both sides.",
    )


class Claim(ClaimOptions):
    """A comparison of cells `<display>/<row>/<column>/<metric>` with each other or with a number.

    The effect is in the claimed direction: `greater`: left - right; `less` and `no_gain`: right -
    left; `falls_with`: -(Kendall's tau) of left and right along the cells that `*` matches. The
    margin that it must exceed is `at_least`, of `no_gain` -at_least: a gain of left over right of
    up to so much counts as none. Without it, the margin is the effect of two sides that are alike.

    Lists of cells on both sides, of one length, are compared pair by pair; the effect of a seed is
    the mean over the pairs. `measure`: `difference`; `log_ratio`, ln(left / right) where `greater`
    has left - right; `log_odds`, the logarithm of the odds of left over those of right, of
    percentages; `superiority`, the chance that a seed of left is above one of right, 0.5 if both
    are alike; `success_rate`, the share of left's seeds above the threshold of the analysis plan,
    less that of right's.
    """

    claim: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")]
    statement: str
    source: str
    left: str | Annotated[list[str], Field(min_length=2)]
    right: str | Annotated[list[str], Field(min_length=2)] | Number
    relation: Relation
    unit: str

    @model_validator(mode="after")
    def _trend_is_of_cells(self) -> Self:
        sides = (self.left, self.right)
        if self.relation == "falls_with" and not all(isinstance(side, str) for side in sides):
            raise ValueError("`falls_with` is about two rows of cells, not about lists or a number")
        lists = [side for side in sides if isinstance(side, list)]
        if len(lists) == 1 or len(set(map(len, lists))) > 1:
            raise ValueError("`left` and `right` are lists of one length, or neither is a list")
        if self.measure != "difference" and self.relation not in ("greater", "less"):
            raise ValueError(f"measure {self.measure} goes with the relations greater and less")
        if self.measure in ("success_rate", "superiority") and not list_cells(self.right):
            rule = "compares the seeds of two cells, not those of one with a number"
            raise ValueError(f"measure {self.measure} {rule}")
        return self

    @property
    def margin(self) -> float:
        """What the effect in the claimed direction must exceed."""
        if self.at_least is None:
            return self.null
        if self.relation == "no_gain":
            return -self.at_least
        return self.at_least

    @property
    def null(self) -> float:
        """The effect if both sides are alike."""
        return NULLS.get(self.measure, 0.0)

    def list_side_cells(self) -> list[tuple[str, str]]:
        """Return (key of the claim, cell) for each cell that the claim names."""
        side_cells = []
        for side in SIDES:
            side_cells += [(side, cell) for cell in list_cells(getattr(self, side))]
        return side_cells

    def list_cells(self) -> list[str]:
        """Return the cells that the claim names."""
        return [cell for _, cell in self.list_side_cells()]


def list_cells(side: str | float | list[str] | None) -> list[str]:
    """Return the keys of cells, or patterns, of a side of a claim; none if it is a number."""
    if isinstance(side, list):
        return side
    if isinstance(side, str):
        return [side]
    return []


def match_stars(pattern: str, cell: str) -> list[str] | None:
    """Match the key of a cell with a side of a claim.

    Return the text for each `*`, or None if they do not match.
    """
    parts = pattern.split("/")
    names = cell.split("/")
    if len(parts) != len(names):
        return None
    matched = []
    for part, name in zip(parts, names, strict=True):
        if part == "*":
            matched.append(name)
        elif part != name:
            return None
    return matched
