"""The spec of a folder of prepared data: the module that prepares it, its options and sources."""

import importlib
from dataclasses import dataclass
from inspect import isabstract
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import StrictModel, Word, parse_as
from workflow_scripts.data.sources.task_sources import DataOptions
from workflow_scripts.evaluation.protocol import Protocol

DATASETS = "workflow_scripts.data.datasets"
EXAMPLE = "workflow_scripts/data/datasets/cogs.py"


@dataclass(frozen=True)
class DataSpec:
    """What a folder of prepared data is made from, as under `spec` in its dataset.json.

    prepare: name of the module of `datasets/`, whose function `prepare` makes the data. options: of
    its class Options. sources: <dataset>/<file> of sources.yaml.
    """

    task: str
    prepare: str
    options: DataOptions
    sources: list[str]
    protocol: Protocol

    def to_json(self) -> dict[str, Any]:
        """Return the content for a JSON file, with the options that were set."""
        return {
            "task": self.task,
            "prepare": self.prepare,
            "options": self.options.model_dump(mode="json", by_alias=True, exclude_unset=True),
            "sources": list(self.sources),
            "protocol": self.protocol,
        }


class _Content(StrictModel):
    """The content of a DataSpec in a JSON file."""

    task: Word
    prepare: Annotated[str, Field(pattern=r"^workflow_scripts\.data\.datasets\.[A-Za-z0-9_]+$")]
    options: dict[str, Any]
    sources: list[str]
    protocol: Protocol


def read_data_spec(content: Any, file: str | Path, key: str | tuple[str, ...] = ()) -> DataSpec:
    """Read a data spec, the value of `key` in a file.

    Raises UserError for wrong keys and values.
    """
    parsed = parse_as(_Content, content, file, key)
    keys = key
    if isinstance(keys, str):
        keys = (keys,)
    options_class = import_options_class(parsed.prepare, parsed.task)
    options = parse_as(options_class, parsed.options, file, (*keys, "options"))
    return DataSpec(parsed.task, parsed.prepare, options, parsed.sources, parsed.protocol)


def import_options_class(module_name: str, task: str) -> type[DataOptions]:
    """Import the module that prepares the data of a task, and return its class Options.

    Raises UserError if the module cannot be imported, if it has no class Options or no function
    `prepare`, or if the class is no complete DataOptions.
    """
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # the module may be a user's
        problem = f"{module_name} cannot be imported: {type(error).__name__}: {error}; correct it"
        missing = find_missing_module(error, module_name)
        if missing:
            problem = (
                f"`prepare` is {module_name}, but there is no module {missing}; "
                "write it, or correct the name"
            )
        raise UserError(f"task {task}: {problem}") from error
    for name in ("Options", "prepare"):
        if not hasattr(module, name):
            raise UserError(
                f"task {task}: module {module_name} has no `{name}`; {EXAMPLE} has both"
            )
    options_class = module.Options
    is_of_options = isinstance(options_class, type) and issubclass(options_class, DataOptions)
    if not is_of_options or isabstract(options_class):
        raise UserError(
            f"task {task}: `Options` of {module_name} is no DataOptions with a method "
            f"`list_splits`; {EXAMPLE} has one"
        )
    return options_class


def find_missing_module(error: Exception, module: str) -> str | None:
    """Return what does not exist, the module or a package that it is in; None of other errors."""
    if not isinstance(error, ModuleNotFoundError) or not error.name:
        return None
    return error.name if f"{module}.".startswith(f"{error.name}.") else None
