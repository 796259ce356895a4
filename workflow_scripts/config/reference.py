"""List the keys of all files with type, default and description: the second half of docs/configuration.md."""

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
from workflow_scripts.tasks import settings
from workflow_scripts.tasks.packages import (
    NAMED,
    find_settings_class,
    list_packages,
    load_kind_settings,
)

PAGE = Path("docs/configuration.md")
START = "<!-- begin keys: python -m workflow_scripts.config.reference -->\n"
DISPLAYS = "TableDisplay Selection Row Column FigureDisplay ShownRuns Runs AnalysedRuns Analysis"
GROUPS = {  # heading -> classes, each after those that it extends
    "config.yaml": (schema, "Config DataSources ModelSources"),
    "catalogue/tasks and catalogue/methods": (
        schema,
        "Layer DataLayer Condition TaskEntry MethodEntry VariantEntry",
    ),
    "catalogue/scales.yaml and catalogue/metrics.yaml": (schema, "Scale Jobs Metrics"),
    "experiments.yaml": (schema, "Experiments Experiment"),
    "displays.yaml": (display_schema, DISPLAYS),
    "claims.yaml": (display_schema, "ClaimOptions Claim"),
    "analysis_plan.yaml and plans/": (
        analysis_plan,
        "AnalysisPlan FirstPlan LaterPlan PrimaryClaim Control Requirement Pilots Spread",
    ),
    "Sections validation, search": (settings, "Validation Search"),
    "Section init": (schema, "Init"),
    "Section intervention": (interventions, "Intervention"),
}

OPTIONS = {  # heading -> package whose modules have options
    "Options of measures": MEASURES,
    "Options of analyses": ANALYSES,
    "Options of figures": FIGURES,
}


def make_reference() -> str:
    """Return the lists of keys as Markdown, by file and by section of the settings."""
    lines: list[str] = []
    shown: dict[type[BaseModel], str] = {}
    for heading, (module, names) in GROUPS.items():
        lines.append(f"### {heading}")
        for name in names.split():
            lines += list_keys(getattr(module, name), name, shown)
    for section, base in (("training", settings.Training), ("evaluation", settings.Evaluation)):
        lines.append(f"### Section {section}")
        lines += list_keys(base, base.__name__, shown)
        lines += list_keys_by_kind(section, shown)
    for section, group in NAMED.items():
        lines.append(f"### Section {section}")
        classes = {name: find_settings_class(group, name) for name in list_packages(group)}
        for name, model in sorted(
            classes.items(), key=lambda pair: len(inspect.getmro(pair[1] or object))
        ):
            if model:
                lines += list_keys(model, format_link(group, name), shown)
    lines.append("### Section problem")
    lines += list_keys_by_kind("problem", shown)
    for heading, package in OPTIONS.items():
        lines.append(f"### {heading}")
        for name in list_modules(f"{package}.options"):
            lines += list_option_keys(package, name, shown)
    return "\n\n".join(lines) + "\n"


def format_link(group: str, name: str) -> str:
    """Return a link to the settings of a package."""
    return f"[{name}](../workflow_scripts/{group}/{name}/settings.py)"


def list_keys_by_kind(section: str, shown: dict[type[BaseModel], str]) -> Iterator[str]:
    """Yield the keys of each class of a section that is not shown yet, with the kinds of tasks that have it."""
    kinds_of_class: dict[type[BaseModel], list[str]] = defaultdict(list)
    for kind in list_packages("tasks"):
        kinds_of_class[getattr(load_kind_settings(kind), section)].append(kind)
    for model in sorted(kinds_of_class, key=lambda model: len(inspect.getmro(model))):
        if model not in shown:
            links = [format_link("tasks", kind) for kind in kinds_of_class[model]]
            yield from list_keys(model, ", ".join(links), shown)


def list_option_keys(package: str, name: str, shown: dict[type[BaseModel], str]) -> Iterator[str]:
    """Yield the keys of a module's options, and of the classes of their values."""
    model = load_options_class(name, package)
    link = f"[{name}](../{package.replace('.', '/')}/options/{name}.py)"
    yield from list_keys(model, link, shown)
    for field in model.model_fields.values():
        for inner_model in list_models_in(field.annotation):
            if inner_model not in shown:
                yield from list_keys(inner_model, inner_model.__name__, shown)


def list_keys(
    model: type[BaseModel], title: str, shown: dict[type[BaseModel], str]
) -> Iterator[str]:
    """Yield a heading and a table of the keys of a class, without those that it has from a class in `shown`."""
    content = model.model_json_schema()
    properties = content.get("properties", {})  # a RootModel has none
    comments = read_comments(model) if properties else {}
    inherited: dict[str, Any] = {}
    for base in (base for base in shown if issubclass(model, base)):
        inherited |= base.model_json_schema()["properties"]
    rows = []
    for key, one in properties.items():
        if inherited.get(key) != one and "const" not in one:
            default = (
                "required"
                if key in content.get("required", ())
                else f"`{json.dumps(one.get('default'))}`"
            )
            said = (one.get("description") or comments.get(key, "")).replace("|", "\\|")
            said = re.sub("`[^`]*`|<", lambda found: "&lt;" if found[0] == "<" else found[0], said)
            cells = (f"`{key}`", format_type(one), "" if default == "`null`" else default, said)
            rows.append(f"| {' | '.join(cells)} |")
    bases = [name for base, name in shown.items() if base in model.__bases__]
    shown[model] = title
    text = " ".join(inspect.cleandoc(model.__doc__ or "").split("\n\n")[0].split())
    yield f"**{title}**: {text}" + f" Besides the keys of {' and '.join(bases)}:" * bool(bases)
    if rows:
        yield "\n".join(["| key | type | default | |", "|---|---|---|---|", *rows])


def format_type(content: dict[str, Any]) -> str:
    """Return the type of a value in words: `list of text`, a class, or the values that are allowed."""
    if "$ref" in content:
        return content["$ref"].rsplit("/", 1)[1]
    if "anyOf" in content:
        return " or ".join(format_type(one) for one in content["anyOf"] if one != {"type": "null"})
    if "enum" in content or "const" in content:
        return ", ".join(f"`{value}`" for value in content.get("enum", [content.get("const")]))
    inner = content.get("items") or content.get("additionalProperties")
    if "prefixItems" in content:
        inner = content["prefixItems"][0]
    inner = next(iter(content.get("patternProperties", {}).values()), inner)
    words = {
        "integer": "whole number",
        "string": "text",
        "boolean": "true or false",
        "object": "keys",
        "array": "list",
    }
    limits = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    bounds = [
        f"{sign} {content[key]}" for key, sign in limits.items() if content.get(key, 2**31) != 2**31
    ]
    kind = str(words.get(content.get("type", ""), content.get("type", "any")))
    return " ".join(
        [
            kind,
            *([f"of {format_type(inner)}"] if isinstance(inner, dict) and inner else []),
            *bounds,
        ]
    )


def read_comments(model: type[BaseModel]) -> dict[str, str]:
    """Return the comment of each field of a class: at the end of its line, else in the lines before it."""
    found = {}
    for base in (
        one for one in reversed(model.__mro__) if one.__module__.startswith("workflow_scripts")
    ):
        fields = re.findall(
            r"((?:^ +#.*\n)*)^    (\w+): .*?(?:  # (.*))?$", inspect.getsource(base), re.MULTILINE
        )
        for above, name, beside in fields:
            found[name] = beside or " ".join(line.strip("# ") for line in above.splitlines())
    return found


if __name__ == "__main__":
    before, start, _ = PAGE.read_text(encoding="utf-8").partition(START)
    PAGE.write_text(f"{before}{start}\n{make_reference()}", encoding="utf-8")
