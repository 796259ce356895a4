"""Resolve specs: everything but the code that can change the data of a task, a run, its scores or interventions.

Settings that have the default of their class are left out, so that a new setting changes the digest of no spec.
"""

import importlib
import json
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel

from workflow_scripts.common.errors import Problems, UserError
from workflow_scripts.common.files import digest, format_canonical_json, read_json
from workflow_scripts.common.validation import StrictModel, parse_as, suggest_name
from workflow_scripts.config.catalogue import START, Catalogue, Run, parse_run, store_with_catalogue
from workflow_scripts.config.layers import (
    Entries,
    drop_places,
    list_task_blocks,
    locate_errors,
    merge_section,
    merge_settings,
)
from workflow_scripts.config.packages import check_sections
from workflow_scripts.config.schema import DataLayer, DataSpec, Init
from workflow_scripts.data.sources.declared import load_repositories
from workflow_scripts.evaluation.protocol import find_worst_protocol
from workflow_scripts.interventions.settings import Intervention, Options, list_candidate_sources
from workflow_scripts.tasks.settings import Evaluation, Search, Training

DATASETS = "workflow_scripts.data.datasets"
# Keys of a run's spec that scoring reads.
SCORED = ("task", "kind", "method", "seed", "protocol", "data", "model", "problem", "init")


def resolve_data(catalogue: Catalogue, task: str, scale: str) -> dict:
    """Return the data spec of a task at a scale."""
    return json.loads(_resolve_data(catalogue, task, scale))


@store_with_catalogue
def _resolve_data(catalogue: Catalogue, task: str, scale: str) -> str:
    entries, options = merge_data(catalogue, task, scale)
    spec = {"task": task, **drop_places(entries), "options": drop_places(options)}
    with locate_errors({"options": options, "prepare": {"prepare": entries["prepare"]}}):
        parse_as(load_options(spec["prepare"], task), spec["options"], f"options of task {task} at scale {scale}")
    return format_canonical_json(spec)


def read_data_spec(file: Path) -> dict:
    """Read the data spec of a JSON file, like `spec` in a dataset.json. Raises UserError for wrong keys and values."""
    spec = read_json(file)
    parse_as(DataSpec, spec, file)
    load_options(spec["prepare"], spec["task"])
    return spec


def merge_data(catalogue: Catalogue, task: str, scale: str) -> tuple[Entries, Entries]:
    """Return the keys of a data spec but `task` and `options`, and its options, with the places where they are set."""
    found: Entries = {"sources": ([], "default"), "protocol": ("paper", "default")}
    options: Entries = {}
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
        options |= merge_section([block], "options")
    return found, options


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
            example = "workflow_scripts/data/datasets/cogs.py has both"
            raise UserError(f"task {task}: module {prepare} has no `{name}`; {example}")
    return module.Options


def resolve_candidates(catalogue: Catalogue, task: str, scale: str) -> dict:
    """Return split, sources and options of a task's synonym candidates, which all methods share."""
    entries, where = merge_section(list_task_blocks(catalogue, task, scale), "intervention"), f"settings of task {task}"
    with locate_errors({"intervention": entries}):
        settings = parse_as(Intervention, drop_places(entries), f"{where} at scale {scale}", "intervention")
        options = parse_as(Options, settings.candidates, where, "intervention.candidates")
    return {"split": settings.split, "options": settings.candidates, "sources": list_candidate_sources(options)}


def resolve_run(catalogue: Catalogue, run: Run | str, scale: str, precision: str = "auto") -> dict:
    """Return the spec of a run.

    `precision` of config.yaml applies to the run and to the runs that it starts from; `auto` keeps their own. Where
    given weights are scored, the spec has only what scoring reads, and `init` is the source of the weights.
    """
    run = parse_run(catalogue, run) if isinstance(run, str) else run
    # Resolved once for all seeds of a variant.
    spec = json.loads(_resolve_run(catalogue, replace(run.training, seed=0), scale, precision)) | {"seed": run.seed}
    parent = None
    if run.weights not in (None, START):
        parent = replace(run.training, task=run.weights)
    elif spec["init"] and "seed" in spec["init"]:
        parent = replace(parse_run(catalogue, spec["init"]["run"]), seed=run.seed)
    if parent:
        spec["init"] = {"run": str(parent), "spec": digest(resolve_run(catalogue, parent, scale, precision))}
    if run.weights is None:
        return spec
    scored = {key: spec[key] for key in SCORED} | {"variant": run.variant, "weights": run.weights}
    return scored | {"objective": {}, "training": {"torch_threads": spec["training"]["torch_threads"]}}


def add_defaults(spec: dict) -> dict:
    """Return a spec with every setting of model, problem and objective, and of a training."""
    settings = check_sections(spec, spec["kind"], "spec")
    if "weights" not in spec:
        settings["training"] = parse_training(spec["training"], "spec")
    return spec | {key: spec[key] | found.model_dump(mode="json") for key, found in settings.items() if found}


def find_search_run(catalogue: Catalogue, run: Run, scale: str, precision: str = "auto") -> Run | None:
    """Return the run of the hyperparameter search before `run`; None if there is no search."""
    search = resolve_run(catalogue, replace(run, seed=0), scale, precision).get("search")
    return replace(run, seed=Search(**search).seed) if search else None


def infer_precision(catalogue: Catalogue, run: Run | str, scale: str, made: str) -> str:
    """Return the `precision` of config.yaml that resolves to the precision `made` of a trained run."""
    return "auto" if read_precision(resolve_run(catalogue, run, scale)) == made else made


def read_precision(spec: dict) -> str:
    """Return the precision of a spec, which leaves the default out."""
    return spec["training"].get("precision", Training.model_fields["precision"].default)


def find_parent_run(catalogue: Catalogue, run: Run, scale: str, precision: str = "auto") -> Run | None:
    """Return the run whose weights `run` starts from; None if there is none."""
    origin = resolve_run(catalogue, run, scale, precision)["init"]
    return parse_run(catalogue, origin["run"]) if origin and "run" in origin else None


def resolve_evaluation(catalogue: Catalogue, run: Run, scale: str) -> dict:
    """Return the evaluation settings of a run: splits, beam size, maximum length."""
    return dict(_resolve_section(catalogue, replace(run, seed=0), scale, Evaluation))


def resolve_intervention(catalogue: Catalogue, run: Run, scale: str) -> dict:
    """Return the settings of the interventions on a run."""
    return dict(_resolve_section(catalogue, replace(run, seed=0), scale, Intervention))


@store_with_catalogue
def _resolve_section(catalogue: Catalogue, run: Run, scale: str, kind: type[StrictModel]) -> dict:
    name, where = kind.__name__.lower(), _where(run)
    entries = merge_settings(catalogue, run, scale)
    with locate_errors(entries):
        sections = {section: drop_places(found) for section, found in entries.items()}
        settings = parse_as(kind, sections[name], where, name)
        if isinstance(settings, Intervention):
            _check_intervention(settings, sections, where)
        return settings.model_dump(exclude_defaults=True)


def _check_intervention(settings: Intervention, sections: dict[str, dict], where: str) -> None:
    """Check that the model has the blocks and that the task has the split."""
    layers = sections["model"].get("layers")
    if layers and isinstance(settings.blocks, list) and max(settings.blocks) >= layers:
        what = f"key 'intervention.blocks' is {settings.blocks}, but the model has {layers} blocks"
        raise UserError(f"{where}: {what}; name some of 0 to {layers - 1}")
    validation = sections["training"].get("validation")
    validated = validation.get("split") if isinstance(validation, dict) else None
    splits = dict.fromkeys(filter(None, ["train", validated, *sections["evaluation"].get("splits", [])]))
    if settings.split not in splits:
        what = f"key 'intervention.split' is {settings.split!r}, no split of the task"
        raise UserError(f"{where}: {what}; {suggest_name(settings.split, splits)}")


@store_with_catalogue
def _resolve_run(catalogue: Catalogue, run: Run, scale: str, precision: str) -> str:
    entries = merge_settings(catalogue, run, scale)
    with locate_errors(entries):
        sections = {section: drop_places(found) for section, found in entries.items()}
        return format_canonical_json(_make_spec(catalogue, run, scale, precision, sections))


def _make_spec(catalogue: Catalogue, run: Run, scale: str, precision: str, sections: dict[str, dict]) -> dict:
    """Check the settings of a training, and return its spec."""
    where, problems = _where(run), Problems()
    kind, kinds = catalogue.tasks[run.task].kind, catalogue.methods[run.method].kinds
    if kind not in kinds:
        raise UserError(f"{where}: {run.task} is of the kind {kind}, and {run.method} is for {', '.join(kinds)}")
    chosen = {} if precision == "auto" else {"precision": precision}
    with problems.collect():
        settings = parse_training(sections["training"] | chosen, where)
    with problems.collect():
        parsed = check_sections(sections, kind, where)
    problems.check_empty()
    objective, layers = parsed["objective"], getattr(parsed["model"], "layers", 0)
    if layers and (check_blocks := getattr(objective, "check_blocks", None)):
        try:  # the training checks it again on the real model
            check_blocks(layers)
        except ValueError as error:
            raise UserError(f"{where}: objective: {error}") from None
    data = resolve_data(catalogue, run.task, scale)
    spec = {
        "task": run.task,
        "kind": kind,
        "method": run.method,
        "variant": run.variant,
        "seed": run.seed,
        "protocol": find_worst_protocol(data["protocol"], catalogue.scales[scale].protocol),
        "data": data,
        **{section: _drop_defaults(sections[section], given) for section, given in parsed.items()},
        "training": settings.model_dump(mode="json", exclude_defaults=True),
        "init": _find_origin(catalogue, run, parse_as(Init, sections["init"], where, "init"), scale, precision),
    }
    task = catalogue.tasks[run.task]
    # No other run depends on the task's phrases.
    if kind == "seq2seq" and getattr(objective, "weight", 0) and (mi := getattr(objective, "mi", 0)):
        if task.phrases is None:
            what = f"objective.mi is {mi}, but catalogue/tasks gives {run.task} no phrases"
            raise UserError(f"{where}: {what}; add them, or set mi to 0")
        spec["phrases"] = task.phrases
    search = parse_as(Search, sections["search"], where, "search")
    if search.learning_rate:
        if not settings.selection:
            raise UserError(f"{where}: a search needs a validation, and training.validation is none")
        if settings.epochs or settings.validate_every == "epoch":
            what = "a search compares trainings of other batches, and scales their warm-up with training.max_steps"
            raise UserError(f"{where}: {what}; give that and validate_every in steps, and passes as search.epochs")
        spec["search"] = search.model_dump(exclude_defaults=True)
    return spec


def _drop_defaults(section: dict, settings: StrictModel | None) -> dict:
    """Return a section without the keys that have the default of its class."""
    named = {"name": section["name"]} if "name" in section else {}
    return section if settings is None else named | settings.model_dump(mode="json", exclude_defaults=True)


def _where(run: Run) -> str:
    return f"settings of {'/'.join(run.unseeded)}"


def parse_training(section: dict, where: str | Path) -> Training:
    """Check the section `training` of a spec. YAML and JSON have no tuples, which strict validation requires."""
    tuples = {key: tuple(value) for key, value in section.items() if key == "betas" and isinstance(value, list)}
    return parse_as(Training, section | tuples, where, "training")


def _find_origin(catalogue: Catalogue, run: Run, init: Init, scale: str, precision: str) -> dict[str, str] | None:
    """Return the source of the initial weights: None (random), a model of the hub, or a parent run with its digest."""
    where = f"{_where(run)}: init"
    if init.hub:
        if not init.revision:
            raise UserError(f"{where}.hub is {init.hub}; init.revision must name its commit, or version of the package")
        models = {name: entry.revision for name, entry in load_repositories().items() if entry.kind == "model"}
        if init.hub not in models:
            raise UserError(f"{where}.hub is {init.hub}, not a model of sources.yaml; {suggest_name(init.hub, models)}")
        if init.revision != models[init.hub]:
            raise UserError(f"{where}.revision is {init.revision}, in sources.yaml it is {models[init.hub]}")
        return {"hub": init.hub, "revision": init.revision}
    parent = _parse_parent(catalogue, run, init)
    if parent is None:
        return None
    chain, ancestor = [run.unseeded], parent
    while ancestor and ancestor.unseeded not in chain:
        chain.append(ancestor.unseeded)
        found = drop_places(merge_settings(catalogue, ancestor, scale)["init"])
        ancestor = _parse_parent(catalogue, ancestor, parse_as(Init, found, _where(ancestor), "init"))
    if ancestor:
        names = ", which starts from ".join("/".join(each) for each in (*chain, ancestor.unseeded))
        raise UserError(f"{where} goes in a circle: {names}; name another run")
    # resolve_run replaces it by the parent with the run's own seed
    own = {"seed": "own"} if init.seed == "own" else {}
    return {"run": str(parent), "spec": digest(resolve_run(catalogue, parent, scale, precision)), **own}


def _parse_parent(catalogue: Catalogue, run: Run, init: Init) -> Run | None:
    """Return the run that `init` names; None for random weights and for a model of the hub."""
    if init.hub or init.task is None:
        return None
    where = f"{_where(run)}: init"
    if init.variant is None or init.seed is None:
        raise UserError(f"{where}.task is {init.task}; init.variant and init.seed must name the run, too")
    seed = run.seed if init.seed == "own" else init.seed
    try:
        return parse_run(catalogue, f"{init.task}/{init.method or run.method}/{init.variant}/seed-{seed}")
    except UserError as error:
        raise UserError(f"{where}: {error}") from error
