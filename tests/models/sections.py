"""Sections of specs, as they are in JSON files, as objects."""

from workflow_scripts.tasks.run_spec import NamedSettings, parse_named_settings


def parse_model(section: dict) -> NamedSettings:
    return parse_named_settings(section, "model", "spec")


def parse_objective(section: dict) -> NamedSettings | None:
    return parse_named_settings(section, "objective", "spec") if section else None
