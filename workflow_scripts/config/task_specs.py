"""Specs of what a task and a scale decide alone: its data, and what the words of its items may be replaced with."""

import importlib
import json
from functools import lru_cache
from pathlib import Path

from pydantic import BaseModel

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_json
from workflow_scripts.common.hashing import format_canonical_json
from workflow_scripts.common.validation import parse_as, suggest_name
from workflow_scripts.config.loading import Catalogue, find_scale, load_catalogue
from workflow_scripts.config.merging import placed
from workflow_scripts.evaluation.protocol import find_worst_protocol
from workflow_scripts.interventions import settings as intervention_settings
from workflow_scripts.interventions.settings import Intervention


def resolve_data(catalogue: Catalogue, task: str, scale: str) -> dict:
    """What `prepare` is to make for a task at a scale."""
    if task not in catalogue.tasks:
        raise UserError(f"no task '{task}' in catalogue/tasks.yaml; {suggest_name(task, catalogue.tasks)}")
    find_scale(catalogue, scale)
    return json.loads(_data_spec(catalogue.root, task, scale))


def read_data_spec(file: Path) -> dict:
    """What `prepare` is to make, as `dataset.json` keeps it under `spec`. Raises UserError where a key is missing."""
    spec = read_json(file)
    for key in ("task", "prepare", "options", "sources", "protocol"):
        if not isinstance(spec, dict) or key not in spec:
            raise UserError(f"{file}: key '{key}' is missing; key 'spec' of any dataset.json shows a whole spec")
    options_of(spec["prepare"], spec["task"])
    return spec


@lru_cache(maxsize=10_000)
def _data_spec(root: Path, task: str, scale: str) -> str:
    catalogue = load_catalogue(root)
    entry, cut = catalogue.tasks[task], catalogue.scales[scale].data.get(task)
    options, sources, prepare, protocol = entry.options, entry.sources, entry.prepare, entry.protocol
    if cut:
        options = options | cut.options
        sources = sources if cut.sources is None else cut.sources
        prepare = cut.prepare or prepare
        protocol = find_worst_protocol(protocol, cut.protocol or protocol)
    origins = data_origins(catalogue, task, scale)
    with placed({"options": {key: (value, origins[f"options.{key}"]) for key, value in options.items()}}):
        parse_as(options_of(prepare, task), options, f"options of task {task} at scale {scale}")
    return format_canonical_json(
        {"task": task, "prepare": prepare, "options": options, "sources": sources, "protocol": protocol}
    )


def data_origins(catalogue: Catalogue, task: str, scale: str) -> dict[str, str]:
    """The file and entry that sets each key of a data spec, and each of its options, as `options.<key>`."""
    entry, cut = catalogue.tasks[task], catalogue.scales[scale].data.get(task)
    in_tasks, in_scales = f"catalogue/tasks.yaml {task}", f"catalogue/scales.yaml {scale}.data.{task}"
    origins = dict.fromkeys(("task", "prepare", "sources", "protocol"), in_tasks)
    origins |= {f"options.{key}": in_tasks for key in entry.options}
    if cut:
        given = {"prepare": cut.prepare, "sources": cut.sources, "protocol": cut.protocol}
        if cut.protocol and find_worst_protocol(entry.protocol, cut.protocol) == entry.protocol:
            given["protocol"] = None
        origins |= {key: in_scales for key, value in given.items() if value is not None}
        origins |= {f"options.{key}": in_scales for key in cut.options}
    return origins


def options_of(prepare: str, task: str) -> type[BaseModel]:
    """What a data module's `prepare` takes. Raises UserError where there is no such module, or it lacks something."""
    try:
        module = importlib.import_module(prepare)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{prepare}.".startswith(f"{error.name}."):
            raise
        raise UserError(
            f"task {task}: `prepare` is {prepare}, but there is no module {error.name}; write it, or correct the name"
        ) from error
    for name in ("Options", "prepare"):
        if not hasattr(module, name):
            raise UserError(
                f"task {task}: module {prepare} has no `{name}`; workflow_scripts/data/datasets/cogs.py has both"
            )
    return module.Options


def resolve_candidates(catalogue: Catalogue, task: str, scale: str) -> dict:
    """What the words of a task's items may be replaced with: split, sources, options. The same for every method."""
    at = catalogue.scales[scale]
    layers = {
        f"catalogue/tasks.yaml {task}": catalogue.tasks[task].settings,
        f"catalogue/scales.yaml {scale}": at.settings,
    }
    if task in at.by_task:
        layers[f"catalogue/scales.yaml {scale}.by_task.{task}"] = at.by_task[task]
    entries = {key: (value, where) for where, layer in layers.items() for key, value in layer.intervention.items()}
    with placed({"intervention": entries}):
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
