"""Models of displays.yaml and claims.yaml as they are written, before their axes are written out.

Axes, `cells` and `extends` may give any key of an entry, so that each key may be missing here. What
is missing in the end is found when the entry is read as one of the models of `display_schema`.
"""

from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag

from workflow_scripts.common.validation import StrictModel
from workflow_scripts.config.display_schema import (
    ClaimOptions,
    Group,
    Label,
    Number,
    Relation,
    Selection,
    ShownRuns,
    Source,
)
from workflow_scripts.config.schema import Names
from workflow_scripts.data.sources.declared import SourceName

Labels = Annotated[list[str], Field(min_length=1)]
Members = Labels | Annotated[dict[str, dict[str, Any]], Field(min_length=1)]  # of an axis
Combined = list[str | dict[str, Members]]
Each = Annotated[Combined | None, Field(description="Axes whose members this entry combines.")]
Extends = Annotated[
    str | None,
    Field(description="Entry of the same list that this one copies; its own keys win."),
]
AXES = Field(
    {},
    description="Lists of members that `each` of an entry combines: label -> values, or a label.",
)


class MemberEntry(Selection):
    """The values of a member of an axis: keys of rows, of columns or of runs."""

    panel: str | None = None
    series: str | None = None


DisplayMembers = Labels | Annotated[dict[str, MemberEntry], Field(min_length=1)]


class RowEntry(Selection):
    """A row of a table, or a row for each member of axes."""

    each: Each = None
    row: Label | None = None


class ColumnEntry(Selection):
    """A column of a table, or a column for each member of axes."""

    each: Each = None
    column: Label | None = None


class TableEntry(StrictModel):
    """A table of the paper, or one of ours."""

    extends: Extends = None
    source: Source | None = None
    title: str | None = None
    group: Group | None = None
    note: str | None = None
    baseline: Label | None = Field(
        None,
        description="Row that the others are tested against, over examples.",
    )
    transposed: bool = Field(False, description="Print columns downwards.")
    rows: RowEntry | list[RowEntry] = []
    columns: ColumnEntry | list[ColumnEntry] = []
    cells: Selection = Field(Selection.model_validate({}), description="What all cells share.")


class RunsEntry(ShownRuns):
    """Every requested seed of a variant on its tasks, or of one for each member of axes."""

    each: Each = None
    method: str | None = None
    variant: str | None = None
    task: Names | None = None


class FigureEntry(StrictModel):
    """A figure that `module` draws from analyses of the same paper and from scores of `runs`."""

    extends: Extends = None
    source: Source | None = None
    title: str | None = None
    group: Group | None = None
    note: str | None = None
    module: str | None = Field(None, description="Module of workflow_scripts/reporting/figures.")
    analyses: list[str] = []
    runs: RunsEntry | list[RunsEntry] = []
    curves: bool = Field(False, description="The module reads the training.csv of the runs, too.")
    options: dict[str, Any] = {}


class AnalysisEntry(StrictModel):
    """An analysis that `module` computes from checkpoints of `runs`, or from published numbers."""

    extends: Extends = None
    module: str | None = Field(None, description="Module of workflow_scripts/analyses.")
    runs: RunsEntry | list[RunsEntry] = []
    published: str | None = Field(
        None,
        description="Folder of papers/ whose published.csv is analysed.",
    )
    sources: list[SourceName] = Field(
        [],
        description="<dataset>/<file> that the module reads in addition to the runs.",
    )
    scored: bool = Field(False, description="The module reads the evaluations of the runs, too.")
    options: dict[str, Any] = {}


class CellsEntry(StrictModel):
    """The cells of a side of a claim: one for each combination of members of axes."""

    each: Combined
    cell: str = Field(description="The cell, with `{axis}` for a label.")


class ClaimEntry(ClaimOptions):
    """A claim as a comparison of cells, or a claim for each member of axes."""

    claim: str
    each: Each = None
    when: list[dict[str, Any]] = Field(
        [],
        description="Fields for some members: `{axis: labels, field: value}`; the lower line wins.",
    )
    statement: str | None = None
    source: str | None = None
    left: str | list[str] | CellsEntry | None = None
    right: str | list[str] | CellsEntry | Number | None = None
    relation: Relation | None = None
    unit: str | None = None


def _choose_display(entry: Any) -> str:
    """Of an entry that extends another one, either may fit."""
    return "figure" if isinstance(entry, dict) and {"module", "extends"} & entry.keys() else "table"


DisplayEntry = Annotated[
    Annotated[TableEntry, Tag("table")] | Annotated[FigureEntry, Tag("figure")],
    Discriminator(_choose_display),
]


class DisplayFile(StrictModel):
    """displays.yaml of a paper.

    Its entries are read one by one, so that a mistake in one costs no other.
    """

    axes: dict[str, DisplayMembers] = AXES
    analyses: dict[str, dict[str, Any]] = {}
    displays: dict[str, dict[str, Any]]


class ClaimFile(StrictModel):
    """claims.yaml of a paper.

    Its entries are read one by one, so that a mistake in one costs no other.
    """

    axes: dict[str, Members] = AXES
    quotes: dict[str, str] = Field({}, description="Texts that several claims name as `{name}`.")
    claims: list[dict[str, Any]]


# What editors check: whole files.


class DisplaysSchema(StrictModel):
    """displays.yaml of a paper."""

    axes: dict[str, DisplayMembers] = AXES
    analyses: dict[str, AnalysisEntry] = {}
    displays: dict[str, DisplayEntry]


class ClaimsSchema(StrictModel):
    """claims.yaml of a paper."""

    axes: dict[str, Members] = AXES
    quotes: dict[str, str] = Field({}, description="Texts that several claims name as `{name}`.")
    claims: list[ClaimEntry]
