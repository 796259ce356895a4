"""Types of displays.yaml and claims.yaml as they are written, before their axes are expanded.

Axes and `cells` may give any key of an entry, so each key may be missing here. None is not allowed: pydantic does not
check defaults.
"""

from typing import Annotated, Any

from pydantic import BaseModel, Discriminator, Field, Tag, create_model

from workflow_scripts.common.validation import StrictModel
from workflow_scripts.config.display_schema import (
    AnalysedRuns,
    Analysis,
    Claim,
    Column,
    FigureDisplay,
    Row,
    Runs,
    Selection,
    TableDisplay,
)

EACH = Field(None, description="Axes whose members this entry combines; `{key: axis}` also sets the key to the label.")
Members = list[str] | dict[str, dict[str, Any] | list[str] | None]  # of an axis
Combined = list[str | dict[str, Members]]
Each = Annotated[Combined | dict[str, str | dict[str, Members]], EACH]
AXES = Field({}, description="Lists of members that `each` of an entry combines: label -> values, or labels alone.")


def make_entry_model(*models: type[BaseModel], **more: Any) -> Any:
    """Return the model of an entry as it is in a file, with the keys of all `models`."""
    fields: dict[str, Any] = {}
    for model in models:
        for name, field in model.model_fields.items():
            plain: Any = Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
            if name != "kind" or model is Claim:
                fields[name] = (plain, Field(None, description=field.description))
    doc = models[0].__doc__
    return create_model(models[0].__name__, __base__=StrictModel, __doc__=doc, **(fields | more))


def _choose_display(entry: Any) -> str:
    """Of an entry that extends another one, either may fit."""
    return "figure" if isinstance(entry, dict) and {"module", "extends"} & entry.keys() else "table"


_row, _column = make_entry_model(Row, each=(Each, None)), make_entry_model(Column, each=(Each, None))
_runs, _analysed = make_entry_model(Runs, each=(Each, None)), make_entry_model(AnalysedRuns, each=(Each, None))
_member = make_entry_model(AnalysedRuns, Selection, task=(str | list[str], None))
_extends = (str, Field(None, description="Entry of the same list that this one copies; its own keys win."))
Table = make_entry_model(
    TableDisplay,
    extends=_extends,
    rows=(_row | list[_row], None),
    columns=(_column | list[_column], None),
    cells=(make_entry_model(Selection), Field(None, description="What all cells share.")),
)
Figure = make_entry_model(FigureDisplay, extends=_extends, runs=(_runs | list[_runs], None))
AnalysisEntry = make_entry_model(Analysis, extends=_extends, runs=(_analysed | list[_analysed], None))
_cells: Any = create_model("Cells", __base__=StrictModel, each=(Combined, ...), cell=(str, ...))
ClaimEntry = make_entry_model(
    Claim,
    claim=(str, ...),
    each=(Combined, None),
    when=(
        list[dict[str, Any]],
        Field(None, description="Fields for some members: `{axis: labels, field: value}`; the lower line wins."),
    ),
    left=(str | list[str] | _cells, None),
    right=(str | float | list[str] | _cells, None),
)


Display = Annotated[Annotated[Table, Tag("table")] | Annotated[Figure, Tag("figure")], Discriminator(_choose_display)]


class DisplayFile(StrictModel):
    """displays.yaml of a paper, with entries of any kind."""

    axes: dict[str, list[str] | dict[str, _member | list[str] | None]] = AXES  # type: ignore[valid-type]
    analyses: dict[str, dict[str, Any]] = {}
    displays: dict[str, dict[str, Any]]


class Displays(DisplayFile):
    """displays.yaml of a paper."""

    analyses: dict[str, AnalysisEntry] = {}  # type: ignore[valid-type]
    displays: dict[str, Display]  # type: ignore[valid-type]


class ClaimFile(StrictModel):
    """claims.yaml of a paper, with entries of any kind."""

    axes: dict[str, Members] = AXES
    quotes: dict[str, str] = Field({}, description="Texts that several claims name as `{name}`.")
    claims: list[dict[str, Any]]


class Claims(ClaimFile):
    """claims.yaml of a paper."""

    claims: list[ClaimEntry]  # type: ignore[valid-type]
