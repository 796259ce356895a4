"""Prepare data by options and specs as they are in JSON files."""

from pathlib import Path
from types import ModuleType

from workflow_scripts.common.validation import parse_as
from workflow_scripts.data import prepared
from workflow_scripts.data.data_spec import read_data_spec


def prepare_data(module: ModuleType, options: dict, sources: dict[str, Path]) -> prepared.Dataset:
    parsed = parse_as(module.Options, options, f"options of {module.__name__}")
    return prepared.prepare_data(module, parsed, sources)


def write_data(made: prepared.Dataset, spec: dict, out: Path) -> None:
    prepared.write_data(made, read_data_spec(spec, "spec"), out)
