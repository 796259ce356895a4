"""List the values of a run's spec, each with the file and line that set it."""

from typing import Any, NamedTuple

from pydantic import BaseModel

from workflow_scripts.common.files import format_canonical_json
from workflow_scripts.config.catalogue import Catalogue, Run
from workflow_scripts.config.layers import Entries, drop_places, merge_settings
from workflow_scripts.config.specs import merge_data, resolve_run
from workflow_scripts.tasks.run_spec import GivenWeightsSpec, RunSpec

# Sections that a run of given weights has no use for.
SECTIONS_OF_TRAININGS = ("objective", "training", "init", "search")
MAX_VALUE_WIDTH = 50  # longer values move the place to the right


class SettingLine(NamedTuple):
    """A value of a spec, and the file and line that set it."""

    key: str
    value: Any
    place: str


def print_spec(catalogue: Catalogue, run: Run, scale: str, precision: str) -> None:
    """Print every value of a run's spec with the file and line that set it."""
    lines = list_setting_lines(catalogue, run, scale, precision)
    values = [format_canonical_json(line.value) for line in lines]
    key_width = max(len(line.key) for line in lines)
    value_width = min(max(len(value) for value in values), MAX_VALUE_WIDTH)
    print(f"{run} at scale {scale} (--scale): key, value, and the line that sets it")
    for line, value in zip(lines, values, strict=True):
        print(f"{line.key:{key_width}}  {value:{value_width}}  {line.place}")


def list_setting_lines(
    catalogue: Catalogue, run: Run, scale: str, precision: str
) -> list[SettingLine]:
    """Return the values of a run's spec: of its data, of its sections, and what follows of them."""
    spec = resolve_run(catalogue, run, scale, precision)
    lines = list_data_lines(catalogue, run.task, scale)
    lines += list_section_lines(spec, merge_settings(catalogue, run, scale))
    if isinstance(spec, GivenWeightsSpec):
        lines.append(SettingLine("init", spec.to_json()["init"], f"weights: {spec.weights}"))
    elif precision != "auto":
        lines = [line for line in lines if line.key != "training.precision"]
        lines.append(SettingLine("training.precision", precision, "config.yaml precision"))
    if isinstance(spec, RunSpec) and spec.phrases is not None:
        lines.append(SettingLine("phrases", spec.phrases, "catalogue/tasks"))
    lines.append(SettingLine("protocol", spec.protocol, "the worst of data, method and scale"))
    return lines


def list_data_lines(catalogue: Catalogue, task: str, scale: str) -> list[SettingLine]:
    """Return the values of a data spec."""
    entries, options = merge_data(catalogue, task, scale)
    lines = []
    for key, (value, place) in entries.items():
        lines.append(SettingLine(f"data.{key}", value, str(place)))
    for key, (value, place) in options.items():
        lines.append(SettingLine(f"data.options.{key}", value, str(place)))
    return lines


def list_section_lines(
    spec: RunSpec | GivenWeightsSpec, sections: dict[str, Entries]
) -> list[SettingLine]:
    """Return the values of a run's sections, with the defaults. `sections`: what is set of each."""
    filled = list_all_settings(spec)
    settings = list_section_settings(spec)
    lines = []
    for section, entries in sections.items():
        if isinstance(spec, GivenWeightsSpec) and section in SECTIONS_OF_TRAININGS:
            continue
        values = drop_places(entries) | filled.get(section, {})
        for key, value in values.items():
            place = describe_default(settings.get(section), key)
            if key in entries:
                _, entry_place = entries[key]
                place = str(entry_place)
            lines.append(SettingLine(f"{section}.{key}", value, place))
    return lines


def describe_default(settings: BaseModel | None, key: str) -> str:
    """Return `default, ` and the file of the class that declares a key with its default."""
    for declaring in type(settings).__mro__:
        if key in getattr(declaring, "__annotations__", {}):
            return f"default, {declaring.__module__.replace('.', '/')}.py"
    return "default"


def list_section_settings(spec: RunSpec | GivenWeightsSpec) -> dict[str, BaseModel]:
    """Return section -> its settings, of a training also those of training and objective."""
    sections: dict[str, BaseModel] = {"model": spec.model.settings, "problem": spec.problem}
    if isinstance(spec, RunSpec):
        sections["training"] = spec.training
        if spec.objective:
            sections["objective"] = spec.objective.settings
    return sections


def list_all_settings(spec: RunSpec | GivenWeightsSpec) -> dict[str, dict[str, Any]]:
    """Return section -> key -> value, with the defaults.

    The sections are model, problem and, of a training, training and objective.
    """
    model = spec.model
    settings = {
        "model": {"name": model.name} | model.settings.model_dump(mode="json"),
        "problem": spec.problem.model_dump(mode="json"),
    }
    if isinstance(spec, RunSpec):
        settings["training"] = spec.training.model_dump(mode="json")
        objective = spec.objective
        if objective:
            settings["objective"] = {"name": objective.name}
            settings["objective"] |= objective.settings.model_dump(mode="json")
    return settings
