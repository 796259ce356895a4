"""List the keys of all files with type, default and description.

They are the second half of docs/configuration.md.
"""

import inspect
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from workflow_scripts.common.plug_ins import (
    ANALYSES,
    FIGURES,
    MEASURES,
    list_modules,
    load_options_class,
)
from workflow_scripts.common.validation import list_models_in
from workflow_scripts.config import analysis_plan, display_schema, schema
from workflow_scripts.interventions import settings as interventions
from workflow_scripts.tasks import settings as tasks
from workflow_scripts.tasks.packages import (
    NAMED,
    find_settings_class,
    list_packages,
    load_kind_settings,
)
from workflow_scripts.tasks.seq2seq import settings as seq2seq
from workflow_scripts.training import settings as training

PAGE = Path("docs/configuration.md")
START = "<!-- begin keys: python -m workflow_scripts.config.reference -->\n"
DISPLAYS = "TableDisplay Selection Row Column FigureDisplay ShownRuns Runs AnalysedRuns Analysis"
GROUPS = {  # heading -> classes, each after those that it extends
    "config.yaml": (schema, "Config DataSources ModelSources"),
    "catalogue/tasks and catalogue/methods": (
        schema,
        "Layer LabelledLayer DataLayer Condition TaskEntry MethodEntry VariantEntry",
    ),
    "catalogue/scales.yaml and catalogue/metrics.yaml": (schema, "Scale Jobs Metrics"),
    "experiments.yaml": (schema, "Experiments Experiment"),
    "displays.yaml": (display_schema, DISPLAYS),
    "claims.yaml": (display_schema, "ClaimOptions Claim"),
    "analysis_plan.yaml and plans/": (
        analysis_plan,
        "AnalysisPlan FirstPlan LaterPlan PrimaryClaim Control Requirement Pilots Spread",
    ),
    "Sections validation, search": (training, "Validation Search"),
    "Section validation of sequence-to-sequence tasks": (seq2seq, "Seq2SeqValidation Decoding"),
    "Section init": (schema, "Init"),
    "Section intervention": (interventions, "Intervention"),
}


OPTIONS = {  # heading -> package whose modules have options
    "Options of measures": MEASURES,
    "Options of analyses": ANALYSES,
    "Options of figures": FIGURES,
}

Titles = dict[type[BaseModel], str]  # of the classes whose keys are listed already

NAMES_OF_TYPES = {
    "integer": "whole number",
    "string": "text",
    "boolean": "true or false",
    "object": "keys",
    "array": "list",
}
SIGNS_OF_LIMITS = {
    "minimum": "≥",
    "exclusiveMinimum": ">",
    "maximum": "≤",
    "exclusiveMaximum": "<",
}
LIMIT_OF_SEEDS = 2**31  # is not listed
# A field of a class: the comment lines above it, its name, the comment at the end of its line.
FIELD = re.compile(r"((?:^ +#.*\n)*)^    (\w+): .*?(?:  # (.*))?$", re.MULTILINE)


def make_reference() -> str:
    """Return the lists of keys as Markdown, by file and by section of the settings."""
    lines: list[str] = []
    titles: Titles = {}
    for heading, (module, names) in GROUPS.items():
        lines.append(f"### {heading}")
        for name in names.split():
            lines += list_keys(getattr(module, name), name, titles)
    for section, base in (("training", training.Training), ("evaluation", tasks.Evaluation)):
        lines.append(f"### Section {section}")
        lines += list_keys(base, base.__name__, titles)
        lines += list_keys_by_kind(section, titles)
    for section, group in NAMED.items():
        lines.append(f"### Section {section}")
        for name, model in _find_package_models(group).items():
            lines += list_keys(model, format_link(group, name), titles)
    lines.append("### Section problem")
    lines += list_keys_by_kind("problem", titles)
    for heading, package in OPTIONS.items():
        lines.append(f"### {heading}")
        for name in list_modules(f"{package}.options"):
            lines += list_option_keys(package, name, titles)
    return "\n\n".join(lines) + "\n"


def _find_package_models(group: str) -> dict[str, type[BaseModel]]:
    """Return the settings class of each package, each after those that it extends."""
    models = {}
    for name in list_packages(group):
        model = find_settings_class(group, name)
        if model is not None:
            models[name] = model
    names = sorted(models, key=lambda name: _count_bases(models[name]))
    return {name: models[name] for name in names}


def _count_bases(model: type[BaseModel]) -> int:
    """Return the number of classes that a class extends, which is less for each of these."""
    return len(inspect.getmro(model))


def format_link(group: str, name: str) -> str:
    """Return a link to the settings of a package."""
    return f"[{name}](../workflow_scripts/{group}/{name}/settings.py)"


def list_keys_by_kind(section: str, titles: Titles) -> Iterator[str]:
    """Yield the keys of each class of a section that has no title yet.

    The title is the kinds of tasks that have the class.
    """
    kinds_of_class: dict[type[BaseModel], list[str]] = defaultdict(list)
    for kind in list_packages("tasks"):
        kinds_of_class[getattr(load_kind_settings(kind), section)].append(kind)
    for model in sorted(kinds_of_class, key=_count_bases):
        if model not in titles:
            links = [format_link("tasks", kind) for kind in kinds_of_class[model]]
            yield from list_keys(model, ", ".join(links), titles)


def list_option_keys(package: str, name: str, titles: Titles) -> Iterator[str]:
    """Yield the keys of a module's options, and of the classes of their values."""
    model = load_options_class(name, package)
    link = f"[{name}](../{package.replace('.', '/')}/options/{name}.py)"
    yield from list_keys(model, link, titles)
    for field in model.model_fields.values():
        for inner_model in list_models_in(field.annotation):
            if inner_model not in titles:
                yield from list_keys(inner_model, inner_model.__name__, titles)


def list_keys(model: type[BaseModel], title: str, titles: Titles) -> Iterator[str]:
    """Yield a heading and a table of the keys of a class, and add the class to `titles`.

    The keys that it has from a class in `titles` are left out.
    """
    schema = model.model_json_schema()
    properties = schema.get("properties", {})  # a RootModel has none
    comments = read_comments(model) if properties else {}
    inherited: dict[str, Any] = {}
    for base in titles:
        if issubclass(model, base):
            inherited |= base.model_json_schema()["properties"]
    rows = []
    for key, content in properties.items():
        if inherited.get(key) == content or "const" in content:
            continue
        is_required = key in schema.get("required", ())
        description = content.get("description") or comments.get(key, "")
        cells = (
            f"`{key}`",
            format_type(content),
            _format_default(content, is_required),
            _escape_cell(description),
        )
        rows.append(f"| {' | '.join(cells)} |")
    bases = [name for base, name in titles.items() if base in model.__bases__]
    titles[model] = title
    summary, _, _ = inspect.cleandoc(model.__doc__ or "").partition("\n\n")
    heading = f"**{title}**: {' '.join(summary.split())}"
    if bases:
        heading += f" Besides the keys of {' and '.join(bases)}:"
    yield heading
    if rows:
        yield "\n".join(["| key | type | default | |", "|---|---|---|---|", *rows])


def _format_default(content: dict[str, Any], is_required: bool) -> str:
    """Return the default of a key; empty if it is null."""
    if is_required:
        return "required"
    default = json.dumps(content.get("default"))
    if default == "null":
        return ""
    return f"`{default}`"


def _escape_cell(text: str) -> str:
    """Escape a text for a cell of a table of Markdown."""

    def escape(match: re.Match[str]) -> str:
        if match[0] == "<":
            return "&lt;"
        return match[0]  # code, in which `<` is itself

    return re.sub("`[^`]*`|<", escape, text.replace("|", "\\|"))


def format_type(content: dict[str, Any]) -> str:
    """Return the type of a value in words: `list of text`, a class, or the allowed values."""
    if "$ref" in content:
        return content["$ref"].rsplit("/", 1)[1]
    if "anyOf" in content:
        alternatives = [each for each in content["anyOf"] if each != {"type": "null"}]
        return " or ".join(format_type(each) for each in alternatives)
    if "enum" in content:
        return ", ".join(f"`{value}`" for value in content["enum"])
    if "const" in content:
        return f"`{content['const']}`"
    json_type: str = content.get("type", "any")
    words = [NAMES_OF_TYPES.get(json_type, json_type)]
    content_of_values = _find_content_of_values(content)
    if content_of_values:
        words.append(f"of {format_type(content_of_values)}")
    for key, sign in SIGNS_OF_LIMITS.items():
        if key in content and content[key] != LIMIT_OF_SEEDS:
            words.append(f"{sign} {content[key]}")
    return " ".join(words)


def _find_content_of_values(content: dict[str, Any]) -> dict[str, Any] | None:
    """Return the schema of the values of a list or a mapping; None if they have none."""
    schema = content.get("items") or content.get("additionalProperties")
    if "prefixItems" in content:
        schema = content["prefixItems"][0]
    if content.get("patternProperties"):
        schema = next(iter(content["patternProperties"].values()))
    if isinstance(schema, dict):
        return schema
    return None


def read_comments(model: type[BaseModel]) -> dict[str, str]:
    """Return the comment of each field of a class and of its bases, "" for a field without one.

    It is at the end of the field's line, else in the lines before it.
    """
    comments = {}
    for base in reversed(model.__mro__):
        if not base.__module__.startswith("workflow_scripts"):
            continue
        for lines_above, name, beside in FIELD.findall(inspect.getsource(base)):
            above = " ".join(line.strip("# ") for line in lines_above.splitlines())
            comments[name] = beside or above
    return comments


if __name__ == "__main__":
    before, start, _ = PAGE.read_text(encoding="utf-8").partition(START)
    PAGE.write_text(f"{before}{start}\n{make_reference()}", encoding="utf-8")
