"""Make the JSON schemas of config.yaml, catalogue/ and papers/, by which editors check and complete these files."""

import json
from pathlib import Path

from pydantic import TypeAdapter

from workflow_scripts.config.analysis_plan import AnalysisPlan
from workflow_scripts.config.display_files import Claims, Displays
from workflow_scripts.config.schema import Config, Experiments, MethodEntry, Metrics, Scale, TaskEntry

FOLDER = Path("catalogue/schemas")


def make_schemas() -> dict[str, dict]:
    """Return file name -> JSON schema."""
    return {
        "analysis_plan.json": AnalysisPlan.model_json_schema(),
        "claims.json": Claims.model_json_schema(),
        "config.json": Config.model_json_schema(),
        "displays.json": Displays.model_json_schema(),
        "experiments.json": Experiments.model_json_schema(),
        "methods.json": TypeAdapter(dict[str, MethodEntry]).json_schema(),
        "metrics.json": TypeAdapter(list[Metrics]).json_schema(),
        "scales.json": TypeAdapter(dict[str, Scale]).json_schema(),
        "tasks.json": TypeAdapter(dict[str, TaskEntry]).json_schema(),
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, schema in make_schemas().items():
        (FOLDER / name).write_text(json.dumps(schema, indent=1) + "\n")
