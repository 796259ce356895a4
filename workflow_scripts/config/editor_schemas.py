"""Make the JSON schemas of config.yaml, catalogue/ and papers/.

Editors check and complete these files by them.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter

from workflow_scripts.common.files import list_files
from workflow_scripts.common.plug_ins import (
    ANALYSES,
    FIGURES,
    import_own_module,
    list_modules,
    load_options_class,
)
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
    names = list_catalogue_names(catalogue)
    units = read_yaml(catalogue.root / "catalogue/metrics.yaml")
    metrics: list[str] = []
    for unit in units:
        metrics += unit["metrics"]
    sections = make_sections()
    for file, schema in schemas.items():
        definitions = schema.get("$defs", {})
        for title, definition in definitions.items():
            if file in LAYERS:
                _replace_sections(definition, sections)
            if file == "displays.json" and title != "RunsEntry":
                # Cells of analyses may have names that the catalogue does not have.
                add_names(definition, {"metric": metrics})
            else:
                add_names(definition, names)
        add_names(schema.get("properties", {}), names)
        if file in LAYERS:
            definitions = definitions | sections
        schema["$defs"] = definitions
    add_names(sections["init"], names)
    entries = schemas["displays.json"]["$defs"]
    add_names(entries["FigureEntry"], {"module": _list_modules("reporting/figures")})
    add_names(entries["AnalysisEntry"], {"module": _list_modules("analyses")})
    _add_options(entries["FigureEntry"], FIGURES)
    _add_options(entries["AnalysisEntry"], ANALYSES)
    _add_experiment_names(schemas["experiments.json"], names)
    jobs_keys = schemas["scales.json"]["$defs"]["Jobs"]["properties"]
    jobs_keys["memory_of"]["propertyNames"] = {"enum": names["method"]}
    jobs_keys["large_gpu"]["items"] = {"enum": names["method"]}
    return schemas


def list_catalogue_names(catalogue: Catalogue) -> dict[str, list[str]]:
    """Return the names that a key may have, by key."""
    variants: set[str] = set()
    for method in catalogue.methods.values():
        variants |= method.variants.keys()
    return {
        "task": [*catalogue.tasks],
        "method": [*catalogue.methods],
        "variant": sorted(variants),
        "scale": [*catalogue.scales],
        "at": [*catalogue.scales],
        "papers": [*catalogue.papers],
        "sources": [*load_sources()],
        "prepare": _list_modules("data/datasets"),
        "hub": [*load_repositories()],
    }


def _replace_sections(definition: Schema, sections: dict[str, Schema]) -> None:
    """Replace the sections of settings in an entry's schema by references to their schemas."""
    properties = definition.get("properties", {})
    for section in sections.keys() & properties.keys():
        properties[section] = {"$ref": f"#/$defs/{section}"}


def _add_options(definition: Schema, package: str) -> None:
    """Add the keys of the options of each module of a package that has some.

    No key is required, since an entry may have it from the one that it extends.
    """
    definition["allOf"] = []
    for module in list_modules(f"{package}.options"):
        options = merge_properties([load_options_class(module, package)])
        is_module = {"properties": {"module": {"const": module}}, "required": ["module"]}
        definition["allOf"].append({"if": is_module, "then": {"properties": {"options": options}}})


def _add_experiment_names(schema: Schema, names: dict[str, list[str]]) -> None:
    """Add the names of methods, variants and scales that are keys of experiments.yaml."""
    experiment = schema["$defs"]["Experiment"]["properties"]
    for key in ("methods", "ours"):
        experiment[key]["propertyNames"] = {"enum": names["method"]}
        experiment[key]["additionalProperties"]["items"] = {"enum": names["variant"]}
    schema["properties"]["seeds"]["propertyNames"] = {"enum": names["scale"]}
    experiment["seeds"]["propertyNames"] = {"enum": names["scale"]}


def _list_modules(folder: str) -> list[str]:
    files = list_files(PACKAGE / folder, "*.py")
    return [file.stem for file in files if file.stem != "__init__"]


def make_sections() -> dict[str, Schema]:
    """Return section -> JSON schema.

    It has the keys of all packages or kinds of tasks that the section may belong to.
    """
    kinds = [load_kind_settings(kind) for kind in list_packages("tasks")]
    models: dict[str, list[Any]] = {
        "training": [kind.training for kind in kinds],
        "evaluation": [kind.evaluation for kind in kinds],
    }
    for section, model in FIXED.items():
        models[section] = [model]
    for section, group in NAMED.items():
        models[section] = [find_settings_class(group, name) for name in list_packages(group)]
    models["problem"] = [kind.problem for kind in kinds]
    models["options"] = []
    for name in _list_modules("data/datasets"):
        module = import_own_module(f"{DATASETS}.{name}")
        if hasattr(module, "Options"):
            models["options"].append(module.Options)
    schemas = {}
    for section, models_of_section in models.items():
        schemas[section] = merge_properties(models_of_section)
    for section, group in NAMED.items():
        schemas[section]["properties"]["name"] = {"enum": [*list_packages(group)]}
    return schemas


def merge_properties(models: Iterable[type[BaseModel]]) -> Schema:
    """Return the JSON schema of a mapping that may have some keys of any of the models."""
    alternatives: dict[str, list[Schema]] = {}  # by key, without repeats
    for model in models:
        for key, content in _list_properties(model).items():
            content.pop("default", None)  # they differ from package to package
            contents = alternatives.setdefault(key, [])
            if content not in contents:
                contents.append(content)
    properties = {}
    for key, contents in sorted(alternatives.items()):
        if len(contents) == 1:
            properties[key] = contents[0]
        else:
            properties[key] = {"anyOf": contents}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _list_properties(model: type[BaseModel]) -> dict[str, Schema]:
    """Return the JSON schemas of the keys of a model, without references to definitions."""
    schema = model.model_json_schema()
    return _replace_references(schema["properties"], schema.get("$defs", {}))


def _replace_references(content: Any, definitions: dict[str, Schema]) -> Any:
    """Replace references by what they refer to, which may have references of its own."""
    if isinstance(content, list):
        return [_replace_references(item, definitions) for item in content]
    if not isinstance(content, dict):
        return content
    replaced = {}
    for key, value in content.items():
        if key == "$ref":
            definition = definitions[value.removeprefix("#/$defs/")]
            replaced |= _replace_references(definition, definitions)
        else:
            replaced[key] = _replace_references(value, definitions)
    return replaced


def add_names(schema: Any, names: dict[str, list[str]]) -> None:
    """Replace text by the known names under the keys of `names`, everywhere in a schema.

    `cogs*` is a name, too.
    """
    if isinstance(schema, list):
        for content in schema:
            add_names(content, names)
    if not isinstance(schema, dict):
        return
    for key, content in schema.items():
        add_names(content, names)
        if key in names and isinstance(content, dict):
            for alternative in (content, content.get("items", {}), *content.get("anyOf", ())):
                _add_enum(alternative, names[key])
                _add_enum(alternative.get("items", {}), names[key])


def _add_enum(content: Any, names: list[str]) -> None:
    if isinstance(content, dict) and content.get("type") == "string":
        content |= {"anyOf": [{"enum": names}, {"pattern": r"\*$"}]}


def write_schemas(catalogue: Catalogue) -> list[str]:
    """Write the schemas that have changed, and return their names."""
    FOLDER.mkdir(exist_ok=True)
    changed = []
    for name, schema in make_schemas(catalogue).items():
        file = FOLDER / name
        text = json.dumps(schema, indent=1) + "\n"
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
            changed.append(str(file))
    return changed
