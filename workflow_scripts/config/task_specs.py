"""Specs of what a task and a scale decide alone: its data, and what the words of its items may be replaced with."""

import importlib
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import format_canonical_json, read_json
from workflow_scripts.common.validation import parse_as
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.entries import Place
from workflow_scripts.config.layers import list_task_blocks, locate_errors, merge_section
from workflow_scripts.config.loading import read_catalogue
from workflow_scripts.config.schema import DataLayer, DataSpec
from workflow_scripts.evaluation.protocol import find_worst_protocol
from workflow_scripts.interventions import settings as intervention_settings
from workflow_scripts.interventions.settings import Intervention

DATASETS = "workflow_scripts.data.datasets"


def resolve_data(catalogue: Catalogue, task: str, scale: str) -> dict:
    """Return the data spec of a task at a scale."""
    return json.loads(_data_spec(catalogue.root, task, scale))


def read_data_spec(file: Path) -> dict:
    """Read the data spec of a JSON file, like `spec` in a dataset.json. Raises UserError for wrong keys and values."""
    spec = read_json(file)
    parse_as(DataSpec, spec, file)
    load_options(spec["prepare"], spec["task"])
    return spec


@lru_cache(maxsize=10_000)
def _data_spec(root: Path, task: str, scale: str) -> str:
    values = merge_data(read_catalogue(str(root)), task, scale)
    spec: dict[str, Any] = {key: value for key, (value, _) in values.items() if not key.startswith("options.")}
    options = {key.removeprefix("options."): found for key, found in values.items() if key.startswith("options.")}
    spec["options"] = {key: value for key, (value, _) in options.items()}
    with locate_errors({"options": options, "prepare": {"prepare": values["prepare"]}}):
        parse_as(load_options(spec["prepare"], task), spec["options"], f"options of task {task} at scale {scale}")
    return format_canonical_json({"task": task, **spec})


def merge_data(catalogue: Catalogue, task: str, scale: str) -> dict[str, tuple[Any, Place | str]]:
    """Return each key of a data spec but `task`, and each option as `options.<key>`, with the place where it is set."""
    found: dict[str, tuple[Any, Place | str]] = {"sources": ([], "default"), "protocol": ("paper", "default")}
    for block in list_task_blocks(catalogue, task, scale):
        content = block.content
        if not isinstance(content, DataLayer):
            continue
        if content.prepare is not None:
            found["prepare"] = (f"{DATASETS}.{content.prepare}", block.place / "prepare")
        if content.sources is not None:
            found["sources"] = (content.sources, block.place / "sources")
        if content.protocol and find_worst_protocol(found["protocol"][0], content.protocol) != found["protocol"][0]:
            found["protocol"] = (content.protocol, block.place / "protocol")
        found |= {f"options.{key}": (value, block.place / "options" / key) for key, value in content.options.items()}
    return found


def load_options(prepare: str, task: str) -> type[BaseModel]:
    """Return the class of a data module's options. Raises UserError if the module or a part of it is missing."""
    try:
        module = importlib.import_module(prepare)
    except Exception as error:  # the module may be a user's
        if isinstance(error, ModuleNotFoundError) and error.name and f"{prepare}.".startswith(f"{error.name}."):
            what = f"`prepare` is {prepare}, but there is no module {error.name}; write it, or correct the name"
        else:
            what = f"{prepare} cannot be imported: {type(error).__name__}: {error}; correct it"
        raise UserError(f"task {task}: {what}") from error
    for name in ("Options", "prepare"):
        if not hasattr(module, name):
            raise UserError(
                f"task {task}: module {prepare} has no `{name}`; workflow_scripts/data/datasets/cogs.py has both"
            )
    return module.Options


def resolve_candidates(catalogue: Catalogue, task: str, scale: str) -> dict:
    """Return split, sources and options of a task's synonym candidates, which all methods share."""
    entries = merge_section(list_task_blocks(catalogue, task, scale), "intervention")
    with locate_errors({"intervention": entries}):
        merged = {key: value for key, (value, _) in entries.items()}
        settings = parse_as(Intervention, merged, f"settings of task {task} at scale {scale}", "intervention")
        options = parse_as(
            intervention_settings.Options, settings.candidates, f"settings of task {task}", "intervention.candidates"
        )
    return {
        "split": settings.split,
        "options": settings.candidates,
        "sources": intervention_settings.list_candidate_sources(options),
    }
