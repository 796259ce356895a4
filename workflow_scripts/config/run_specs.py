"""Resolve the spec of a run: everything but the code that can change its result.

Settings that have the default of their class are left out, so that a new setting changes the digest of no spec.
"""

import json
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from workflow_scripts.common.errors import Problems, UserError
from workflow_scripts.common.files import digest, format_canonical_json
from workflow_scripts.common.validation import StrictModel, parse_as, suggest_name
from workflow_scripts.config.catalogue import START, Catalogue, Run, parse_run
from workflow_scripts.config.layers import locate_errors, merge_settings
from workflow_scripts.config.loading import read_catalogue
from workflow_scripts.config.packages import ReadsBlocks, check_sections
from workflow_scripts.config.schema import Init
from workflow_scripts.config.task_specs import resolve_data
from workflow_scripts.data.sources.declared import load_repositories
from workflow_scripts.evaluation.protocol import find_worst_protocol
from workflow_scripts.interventions.settings import Intervention
from workflow_scripts.tasks.settings import Evaluation, Search, Training

# Keys of a spec that scoring reads.
SCORED = ("task", "kind", "method", "seed", "protocol", "data", "model", "problem", "init")


def resolve_run(catalogue: Catalogue, run: Run | str, scale: str, precision: str = "auto") -> dict:
    """Return the spec of a run: everything but the code that can change its result.

    `precision` of config.yaml applies to the run and to the runs that it starts from; `auto` keeps their own. Where
    given weights are scored, the spec has only what scoring reads, and `init` is the source of the weights.
    """
    run = parse_run(catalogue, run) if isinstance(run, str) else run
    # Resolved once for all seeds of a variant.
    spec = json.loads(_resolved(catalogue.root, replace(run.training, seed=0), scale, precision)) | {"seed": run.seed}
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
    return dict(_section(catalogue.root, replace(run, seed=0), scale, Evaluation))


def resolve_intervention(catalogue: Catalogue, run: Run, scale: str) -> dict:
    """Return the settings of the interventions on a run."""
    return dict(_section(catalogue.root, replace(run, seed=0), scale, Intervention))


@lru_cache(maxsize=10_000)
def _section(root: Path, run: Run, scale: str, kind: type[StrictModel]) -> dict:
    name = kind.__name__.lower()
    entries = merge_settings(read_catalogue(str(root)), run, scale)
    with locate_errors(entries):
        section = {key: value for key, (value, _) in entries[name].items()}
        settings = parse_as(kind, section, _where(run), name)
        if isinstance(settings, Intervention):
            _check_intervention(settings, entries, _where(run))
        return settings.model_dump(exclude_defaults=True)


def _check_intervention(settings: Intervention, entries: dict[str, dict], where: str) -> None:
    """Check that the model has the blocks and that the task has the split."""
    sections = {section: {key: value for key, (value, _) in found.items()} for section, found in entries.items()}
    layers = sections["model"].get("layers")
    if layers and isinstance(settings.blocks, list) and max(settings.blocks) >= layers:
        raise UserError(
            f"{where}: key 'intervention.blocks' is {settings.blocks}, but the model has {layers} blocks; "
            f"name some of 0 to {layers - 1}"
        )
    validation = sections["training"].get("validation")
    validated = validation.get("split") if isinstance(validation, dict) else None
    splits = dict.fromkeys(filter(None, ["train", validated, *sections["evaluation"].get("splits", [])]))
    if settings.split not in splits:
        raise UserError(
            f"{where}: key 'intervention.split' is {settings.split!r}, no split of the task; "
            f"{suggest_name(settings.split, splits)}"
        )


@lru_cache(maxsize=10_000)
def _resolved(root: Path, run: Run, scale: str, precision: str) -> str:
    catalogue = read_catalogue(str(root))
    entries = merge_settings(catalogue, run, scale)
    with locate_errors(entries):
        return _checked_spec(catalogue, run, scale, precision, entries)


def _checked_spec(catalogue: Catalogue, run: Run, scale: str, precision: str, entries: dict[str, dict]) -> str:
    sections = {section: {key: value for key, (value, _) in found.items()} for section, found in entries.items()}
    kind, kinds = catalogue.tasks[run.task].kind, catalogue.methods[run.method].kinds
    if kind not in kinds:
        raise UserError(f"{_where(run)}: {run.task} is of the kind {kind}, and {run.method} is for {', '.join(kinds)}")
    training = sections["training"] | ({} if precision == "auto" else {"precision": precision})
    problems = Problems()
    with problems.collect():
        settings = parse_training(training, _where(run))
    with problems.collect():
        parsed = check_sections(sections, kind, _where(run))
    problems.check_empty()
    _check_read_blocks(parsed["objective"], getattr(parsed["model"], "layers", 0), _where(run))
    data = resolve_data(catalogue, run.task, scale)
    return format_canonical_json(
        {
            "task": run.task,
            "kind": kind,
            "method": run.method,
            "variant": run.variant,
            "seed": run.seed,
            "protocol": find_worst_protocol(data["protocol"], catalogue.scales[scale].protocol),
            "data": data,
            **{section: _drop_defaults(sections[section], given) for section, given in parsed.items()},
            "training": settings.model_dump(mode="json", exclude_defaults=True),
            "init": _origin(catalogue, run, sections["init"], scale, precision),
            **_phrases(catalogue, run, parsed["objective"]),
            **_search(run, sections["search"], settings),
        }
    )


def _drop_defaults(section: dict, settings: StrictModel | None) -> dict:
    """Return a section without the keys that have the default of its class."""
    named = {"name": section["name"]} if "name" in section else {}
    return section if settings is None else named | settings.model_dump(mode="json", exclude_defaults=True)


def _check_read_blocks(settings: StrictModel | None, layers: int, where: str) -> None:
    """Check that the model has the blocks that an objective reads. The training checks it again on the real model."""
    if layers and isinstance(settings, ReadsBlocks):
        try:
            settings.check_blocks(layers)
        except ValueError as error:
            raise UserError(f"{where}: objective: {error}") from None


def _where(run: Run) -> str:
    return f"settings of {'/'.join(run.unseeded)}"


def parse_training(section: dict, where: str | Path) -> Training:
    """Check the section `training` of a spec. YAML and JSON have no tuples, which strict validation requires."""
    tuples = {key: tuple(value) for key, value in section.items() if key == "betas" and isinstance(value, list)}
    return parse_as(Training, section | tuples, where, "training")


def _phrases(catalogue: Catalogue, run: Run, objective: StrictModel | None) -> dict[str, str]:
    """Return the task's phrase pattern if the objective reads phrases, so that no other run depends on it."""
    task = catalogue.tasks[run.task]
    if task.kind != "seq2seq" or not (getattr(objective, "weight", 0) and (mi := getattr(objective, "mi", 0))):
        return {}
    if task.phrases is None:
        raise UserError(
            f"{_where(run)}: objective.mi is {mi}, but catalogue/tasks gives "
            f"{run.task} no phrases; add them, or set mi to 0"
        )
    return {"phrases": task.phrases}


def _search(run: Run, given: dict, training: Training) -> dict[str, dict]:
    """Return the hyperparameter search of a variant; specs without a search have no such key."""
    search = parse_as(Search, given, _where(run), "search")
    if search.learning_rate and not training.selection:
        raise UserError(f"{_where(run)}: a search needs a validation, and training.validation is none")
    return {"search": search.model_dump(exclude_defaults=True)} if search.learning_rate else {}


def _origin(catalogue: Catalogue, run: Run, given: dict, scale: str, precision: str) -> dict[str, str] | None:
    """Return the source of the initial weights: None (random), a model of the hub, or a parent run with its digest."""
    where = _where(run)
    init = parse_as(Init, given, where, "init")
    if init.hub:
        if not init.revision:
            raise UserError(f"{where}: init.hub is {init.hub}; init.revision must name its commit")
        models = {name: entry.revision for name, entry in load_repositories().items() if entry.kind == "model"}
        if init.hub not in models:
            raise UserError(
                f"{where}: init.hub is {init.hub}, not a model of sources.yaml; {suggest_name(init.hub, models)}"
            )
        if init.revision != models[init.hub]:
            raise UserError(f"{where}: init.revision is {init.revision}, in sources.yaml it is {models[init.hub]}")
        return {"hub": init.hub, "revision": init.revision}
    if init.task is None:
        return None
    if init.variant is None or init.seed is None:
        raise UserError(f"{where}: init.task is {init.task}; init.variant and init.seed must name the run, too")
    seed = run.seed if init.seed == "own" else init.seed
    try:
        parent = parse_run(catalogue, f"{init.task}/{init.method or run.method}/{init.variant}/seed-{seed}")
    except UserError as error:
        raise UserError(f"{where}: init: {error}") from error
    if parent.unseeded == run.unseeded:
        raise UserError(f"{where}: init names the run itself")
    # resolve_run replaces it by the parent with the run's own seed
    own = {"seed": "own"} if init.seed == "own" else {}
    return {"run": str(parent), "spec": digest(resolve_run(catalogue, parent, scale, precision)), **own}
