"""Make the JSON schemas of config.yaml, catalogue/ and papers/, by which editors check and complete these files."""

import importlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter

from workflow_scripts.common.yaml_files import read_yaml
from workflow_scripts.config.analysis_plan import FirstPlan, LaterPlan
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.display_files import ClaimsSchema, DisplaysSchema
from workflow_scripts.config.layers import FIXED
from workflow_scripts.config.schema import (
    Config,
    Experiments,
    MethodEntry,
    Metrics,
    Scale,
    TaskEntry,
)
from workflow_scripts.data.data_spec import DATASETS
from workflow_scripts.data.sources.declared import load_repositories, load_sources
from workflow_scripts.tasks.packages import FOLDER as PACKAGE
from workflow_scripts.tasks.packages import (
    NAMED,
    find_settings_class,
    list_packages,
    load_kind_settings,
)

FOLDER = Path("catalogue/schemas")
LAYERS = ("methods.json", "tasks.json")  # files whose entries have sections of settings
Schema = dict[str, Any]


def make_schemas(catalogue: Catalogue) -> dict[str, Schema]:
    """Return file name -> JSON schema, in which the names of the catalogue are enumerated."""
    schemas = {
        "analysis_plan.json": FirstPlan.model_json_schema(),
        "claims.json": ClaimsSchema.model_json_schema(),
        "config.json": Config.model_json_schema(),
        "displays.json": DisplaysSchema.model_json_schema(),
        "experiments.json": Experiments.model_json_schema(),
        "later_plan.json": LaterPlan.model_json_schema(),
        "methods.json": TypeAdapter(dict[str, MethodEntry]).json_schema(),
        "metrics.json": TypeAdapter(list[Metrics]).json_schema(),
        "scales.json": TypeAdapter(dict[str, Scale]).json_schema(),
        "tasks.json": TypeAdapter(dict[str, TaskEntry]).json_schema(),
    }
    scales, methods = [*catalogue.scales], [*catalogue.methods]
    variants = sorted({name for method in catalogue.methods.values() for name in method.variants})
    names = {
        "task": [*catalogue.tasks],
        "method": methods,
        "variant": variants,
        "scale": scales,
        "at": scales,
        "papers": [*catalogue.papers],
        "sources": [*load_sources()],
        "prepare": _list_modules("data/datasets"),
        "hub": [*load_repositories()],
    }
    units = read_yaml(catalogue.root / "catalogue/metrics.yaml")
    # Cells of analyses may have names that the catalogue does not have.
    shown = {"metric": [name for unit in units for name in unit["metrics"]]}
    sections = make_sections()
    for name, schema in schemas.items():
        for title, definition in schema.get("$defs", {}).items():
            for section in (
                sections.keys() & definition.get("properties", {}).keys() if name in LAYERS else ()
            ):
                definition["properties"][section] = {"$ref": f"#/$defs/{section}"}
            add_names(
                definition, names if name != "displays.json" or title == "RunsEntry" else shown
            )
        add_names(schema.get("properties", {}), names)
        schema["$defs"] = schema.get("$defs", {}) | (sections if name in LAYERS else {})
    add_names(sections["init"], names)
    for title, folder in (("FigureEntry", "reporting/figures"), ("AnalysisEntry", "analyses")):
        add_names(schemas["displays.json"]["$defs"][title], {"module": _list_modules(folder)})
    experiments = schemas["experiments.json"]
    experiment = experiments["$defs"]["Experiment"]["properties"]
    experiment["methods"] |= {"propertyNames": {"enum": methods}}
    experiment["methods"]["additionalProperties"]["items"] = {"enum": variants}
    for content in (experiments["properties"]["seeds"], experiment["seeds"]):
        content["propertyNames"] = {"enum": scales}
    schemas["scales.json"]["$defs"]["Jobs"]["properties"]["memory_of"]["propertyNames"] = {
        "enum": methods
    }
    return schemas


def _list_modules(folder: str) -> list[str]:
    return sorted(file.stem for file in (PACKAGE / folder).glob("*.py") if file.stem != "__init__")


def make_sections() -> dict[str, Schema]:
    """Return section -> JSON schema with the keys of all packages or kinds of tasks that it may belong to."""
    kinds = [load_kind_settings(kind) for kind in list_packages("tasks")]
    sections: dict[str, list[Any]] = {
        "training": [kind.training for kind in kinds],
        "evaluation": [kind.evaluation for kind in kinds],
    }
    for section, model in FIXED.items():
        sections[section] = [model]
    for section, group in NAMED.items():
        sections[section] = [find_settings_class(group, name) for name in list_packages(group)]
    sections["problem"] = [kind.problem for kind in kinds]
    data = [
        importlib.import_module(f"{DATASETS}.{name}") for name in _list_modules("data/datasets")
    ]
    sections["options"] = [module.Options for module in data if hasattr(module, "Options")]
    schemas = {section: merge_properties(models) for section, models in sections.items()}
    for section, group in NAMED.items():
        schemas[section]["properties"]["name"] = {"enum": [*list_packages(group)]}
    return schemas


def merge_properties(models: Iterable[type[BaseModel]]) -> Schema:
    """Return the JSON schema of a mapping that may have some keys of any of the models."""
    found: dict[str, list[Schema]] = {}
    for model in models:
        schema = model.model_json_schema()
        inline = json.loads(json.dumps(schema["properties"]))
        for name, definition in schema.get("$defs", {}).items():
            text = json.dumps(inline).replace(
                json.dumps({"$ref": f"#/$defs/{name}"}), json.dumps(definition)
            )
            inline = json.loads(text)
        for key, content in inline.items():
            content.pop("default", None)  # they differ from package to package
            known = found.setdefault(key, [])
            known += [content] if content not in known else []
    properties = {
        key: one[0] if len(one) == 1 else {"anyOf": one} for key, one in sorted(found.items())
    }
    return {"type": "object", "properties": properties, "additionalProperties": False}


def add_names(schema: Any, names: dict[str, list[str]]) -> None:
    """Replace text by the known names under the keys of `names`, everywhere in a schema; `cogs*` is a name, too."""
    if isinstance(schema, list):
        schema = dict(enumerate(schema))
    for key, content in schema.items() if isinstance(schema, dict) else ():
        add_names(content, names)
        if key in names and isinstance(content, dict):
            for one in (content, content.get("items", {}), *content.get("anyOf", ())):
                _add_enum(one, names[key])
                _add_enum(one.get("items", {}), names[key])


def _add_enum(content: Any, names: list[str]) -> None:
    if isinstance(content, dict) and content.get("type") == "string":
        content |= {"anyOf": [{"enum": names}, {"pattern": r"\*$"}]}


def write_schemas(catalogue: Catalogue) -> list[str]:
    """Write the schemas that have changed, and return their names."""
    FOLDER.mkdir(exist_ok=True)
    texts = {
        FOLDER / name: json.dumps(schema, indent=1) + "\n"
        for name, schema in make_schemas(catalogue).items()
    }
    changed = [
        file for file, text in texts.items() if not file.exists() or file.read_text() != text
    ]
    for file in changed:
        file.write_text(texts[file])
    return [str(file) for file in changed]
