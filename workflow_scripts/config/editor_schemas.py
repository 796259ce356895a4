"""Make the JSON schemas of config.yaml, catalogue/ and papers/, by which editors check and complete these files."""

import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, TypeAdapter, create_model

from workflow_scripts.common.validation import StrictModel
from workflow_scripts.config.analysis_plan import AnalysisPlan
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
from workflow_scripts.config.schema import AXES, QUOTES, Config, Experiments, MethodEntry, Metrics, Scale, TaskEntry

FOLDER = Path("catalogue/schemas")
EACH = Field(None, description="Axes whose members this entry combines; `{key: axis}` also sets the key to the label.")
Each = Annotated[list[str | dict[str, Any]] | dict[str, str | dict[str, Any]] | None, EACH]


def make_schemas() -> dict[str, dict]:
    """Return file name -> JSON schema."""
    row, column, runs, analysed = (in_file(model, each=(Each, None)) for model in (Row, Column, Runs, AnalysedRuns))
    table = in_file(
        TableDisplay,
        rows=(row | list[row], ...),
        columns=(column | list[column], ...),
        cells=(in_file(Selection) | None, Field(None, description="What all cells share.")),
    )
    figure = in_file(FigureDisplay, runs=(runs | list[runs] | None, None))
    analysis = in_file(Analysis, runs=(analysed | list[analysed] | None, None))
    cells: Any = create_model("Cells", __base__=StrictModel, each=(list[Any], ...), cell=(str, ...))
    rules = Field(None, description="Fields for some members: `{axis: labels, field: value}`; the lower line wins.")
    claim = in_file(
        Claim,
        claim=(str, ...),
        each=(list[Any] | None, None),
        when=(list[dict[str, Any]] | None, rules),
        left=(str | list[str] | cells | None, None),
        right=(str | float | list[str] | cells | None, None),
    )
    axes = (dict[str, dict[str, Any] | list[str]], AXES)
    shown: dict[str, Any] = {"analyses": (dict[str, analysis], {}), "displays": (dict[str, table | figure], ...)}
    claimed: dict[str, Any] = {"quotes": (dict[str, str], QUOTES), "claims": (list[claim], ...)}
    displays = create_model("Displays", __base__=StrictModel, axes=axes, **shown)
    claims = create_model("Claims", __base__=StrictModel, axes=axes, **claimed)
    return {
        "analysis_plan.json": AnalysisPlan.model_json_schema(),
        "claims.json": claims.model_json_schema(),
        "config.json": Config.model_json_schema(),
        "displays.json": displays.model_json_schema(),
        "experiments.json": Experiments.model_json_schema(),
        "methods.json": TypeAdapter(dict[str, MethodEntry]).json_schema(),
        "metrics.json": TypeAdapter(list[Metrics]).json_schema(),
        "scales.json": TypeAdapter(dict[str, Scale]).json_schema(),
        "tasks.json": TypeAdapter(dict[str, TaskEntry]).json_schema(),
    }


def in_file(model: type[BaseModel], **more: Any) -> Any:
    """Return the model of an entry as it is in a file, where axes and `cells` may give any of its keys."""
    fields: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        plain: Any = Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
        if name != "kind" or model is Claim:
            fields[name] = (plain | None, Field(None, description=field.description))
    return create_model(model.__name__, __base__=StrictModel, __doc__=model.__doc__, **(fields | more))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, schema in make_schemas().items():
        (FOLDER / name).write_text(json.dumps(schema, indent=1) + "\n")
