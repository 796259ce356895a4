"""Find the default of a setting that the spec of a fingerprint leaves out."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel, TypeAdapter

from workflow_scripts.common.validation import list_models_in
from workflow_scripts.provenance.code import PACKAGE


class Default(NamedTuple):
    """The default of a setting, as JSON has it."""

    value: Any


def find_settings_section(sections: Mapping[str, type[BaseModel]], key: str) -> str | None:
    """Return the section that a key such as `model.width` is in, the innermost one.

    An empty name is that of the whole spec. None if no section has the key.
    """
    for section in sorted(sections, key=len, reverse=True):
        if not section or key.startswith(f"{section}."):
            return section
    return None


def find_default(settings: type[BaseModel], key: str) -> Default | None:
    """Return the default of a key such as `validation.metric`.

    None for a required key, and for one that is not known or that several classes of a union have.
    """
    models = [settings]
    field = None
    for part in key.split("."):
        fields = []
        for model in models:
            for name, candidate in model.model_fields.items():
                if part in (name, candidate.alias):
                    fields.append(candidate)
        if len(fields) != 1:  # none for a position in a list, or a key of a mapping
            return None
        field = fields[0]
        models = list_models_in(field.annotation)
    if field is None or field.is_required():
        return None
    value = field.get_default(call_default_factory=True)
    return Default(TypeAdapter(Any).dump_python(value, mode="json"))


def list_declaring_modules(settings: type[BaseModel]) -> list[str]:
    """List the modules of this package that declare fields of a class and their defaults."""
    modules = dict.fromkeys(declaring.__module__ for declaring in settings.__mro__)
    return [module for module in modules if module.startswith(f"{PACKAGE}.")]
