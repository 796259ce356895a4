"""Resolve specs: everything but the code that can change a task's data, a run or its scores."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.run_names import START, Run
from workflow_scripts.common.validation import parse_as, suggest_name
from workflow_scripts.config.catalogue import Catalogue, check_run, store_with_catalogue
from workflow_scripts.config.layers import (
    Entries,
    Setting,
    drop_places,
    list_method_blocks,
    list_task_blocks,
    locate_errors,
    merge_section,
    merge_settings,
)
from workflow_scripts.config.schema import DataLayer, Init, LabelledLayer
from workflow_scripts.data.data_spec import DATASETS, DataSpec, import_options_class
from workflow_scripts.data.sources.declared import load_repositories
from workflow_scripts.evaluation.protocol import find_worst_protocol
from workflow_scripts.interventions.settings import CandidateSpec, Intervention, Options
from workflow_scripts.tasks.packages import load_kind_settings
from workflow_scripts.tasks.run_spec import (
    GivenWeightsSpec,
    HubModel,
    Origin,
    ParentRun,
    RunSpec,
    Sections,
    parse_sections,
)
from workflow_scripts.tasks.settings import Evaluation
from workflow_scripts.training.settings import Search, Training


@store_with_catalogue
def resolve_data(catalogue: Catalogue, task: str, scale: str) -> DataSpec:
    """Return the data spec of a task at a scale."""
    entries, options = merge_data(catalogue, task, scale)
    values = drop_places(entries)
    with locate_errors({"options": options, "prepare": {"prepare": entries["prepare"]}}):
        options_class = import_options_class(values["prepare"], task)
        name = f"options of task {task} at scale {scale}"
        parsed = parse_as(options_class, drop_places(options), name)
    return DataSpec(task, values["prepare"], parsed, values["sources"], values["protocol"])


def merge_data(catalogue: Catalogue, task: str, scale: str) -> tuple[Entries, Entries]:
    """Return the keys of a data spec, and its options, with the places where they are set.

    The keys are all but `task` and `options`.
    """
    entries: Entries = {
        "sources": Setting([], "default"),
        "protocol": Setting("paper", "default"),
    }
    options: Entries = {}
    for block in list_task_blocks(catalogue, task, scale):
        content = block.content
        if not isinstance(content, DataLayer):
            continue
        if content.prepare is not None:
            module = f"{DATASETS}.{content.prepare}"
            entries["prepare"] = Setting(module, block.place / "prepare")
        if content.sources is not None:
            entries["sources"] = Setting(content.sources, block.place / "sources")
        if content.protocol:
            protocol = entries["protocol"].value
            if find_worst_protocol(protocol, content.protocol) != protocol:
                entries["protocol"] = Setting(content.protocol, block.place / "protocol")
        options |= merge_section([block], "options")
    return entries, options


def resolve_candidates(catalogue: Catalogue, task: str, scale: str) -> CandidateSpec:
    """Return what the synonym candidates of a task are made from."""
    entries = merge_section(list_task_blocks(catalogue, task, scale), "intervention")
    name = f"settings of task {task}"
    with locate_errors({"intervention": entries}):
        settings = parse_as(
            Intervention,
            drop_places(entries),
            f"{name} at scale {scale}",
            "intervention",
        )
        options = parse_as(Options, settings.candidates, name, "intervention.candidates")
    return CandidateSpec(settings.split, options)


def resolve_run(
    catalogue: Catalogue,
    run: Run,
    scale: str,
    precision: str = "auto",
) -> RunSpec | GivenWeightsSpec:
    """Return the spec of a run.

    `precision` of config.yaml applies to the run and to the runs that it starts from; `auto` keeps
    their own.
    """
    if run.weights is None:
        return resolve_training(catalogue, run, scale, precision)
    return _resolve_given_weights(catalogue, run, run.weights, scale, precision)


def resolve_training(
    catalogue: Catalogue,
    run: Run,
    scale: str,
    precision: str = "auto",
) -> RunSpec:
    """Return the spec of a training.

    For a run that scores given weights it is that of the variant's training on its task.
    """
    run = run.training
    first = run._replace(seed=0)
    spec = _resolve_variant(catalogue, first, scale, precision)  # once for all seeds
    origin = spec.origin
    if isinstance(origin, ParentRun) and _read_init(catalogue, first, scale).seed == "own":
        parent = origin.run._replace(seed=run.seed)
        spec = replace(spec, origin=_describe_parent(catalogue, parent, scale, precision))
    return replace(spec, seed=run.seed)


def _resolve_given_weights(
    catalogue: Catalogue, run: Run, weights: str, scale: str, precision: str
) -> GivenWeightsSpec:
    """Return the spec of scoring weights not trained on the task: only what scoring reads."""
    training = resolve_training(catalogue, run, scale, precision)
    origin = training.origin
    if weights != START:
        parent = run.training._replace(task=weights)
        origin = _describe_parent(catalogue, parent, scale, precision)
    return GivenWeightsSpec(
        training.task,
        training.kind,
        training.method,
        run.variant,
        training.seed,
        training.protocol,
        training.data,
        training.model,
        training.problem,
        origin,
        weights,
        training.torch_threads,
        start=training if origin is None else None,
    )


def _describe_parent(catalogue: Catalogue, parent: Run, scale: str, precision: str) -> ParentRun:
    spec = resolve_training(catalogue, parent, scale, precision)
    return ParentRun(run=parent, spec=spec.digest)


def find_search_run(
    catalogue: Catalogue,
    run: Run,
    scale: str,
    precision: str = "auto",
) -> Run | None:
    """Return the run of the hyperparameter search before `run`; None if there is no search."""
    if run.weights:
        return None
    search = resolve_training(catalogue, run, scale, precision).search
    if search is None:
        return None
    return run._replace(seed=search.seed)


def read_precision(spec: dict[str, Any]) -> str:
    """Return the precision of a spec in a JSON file, which leaves the default out."""
    return spec["training"].get("precision", Training.model_fields["precision"].default)


def find_parent_run(
    catalogue: Catalogue,
    run: Run,
    scale: str,
    precision: str = "auto",
) -> Run | None:
    """Return the run whose weights `run` starts from; None if there is none."""
    origin = resolve_run(catalogue, run, scale, precision).origin
    if not isinstance(origin, ParentRun):
        return None
    return origin.run


def list_ancestors(catalogue: Catalogue, runs: Iterable[Run], scale: str) -> list[Run]:
    """List the runs that the weights of `runs` come from, and those that theirs come from.

    Without `runs` themselves.
    """
    given = list(runs)
    ancestors: dict[Run, None] = {}
    pending = list(given)
    while pending:
        parent = find_parent_run(catalogue, pending.pop(), scale)
        if parent is not None and parent not in ancestors and parent not in given:
            ancestors[parent] = None
            pending.append(parent)
    return list(ancestors)


def resolve_evaluation(catalogue: Catalogue, run: Run, scale: str) -> Evaluation:
    """Return the evaluation settings of a run, such as its splits.

    They are of the class of its kind of task.
    """
    return _resolve_evaluation(catalogue, run._replace(seed=0), scale)


def resolve_intervention(catalogue: Catalogue, run: Run, scale: str) -> Intervention:
    """Return the settings of the interventions on a run."""
    return _resolve_intervention(catalogue, run._replace(seed=0), scale)


@store_with_catalogue
def _resolve_evaluation(catalogue: Catalogue, run: Run, scale: str) -> Evaluation:
    entries = merge_settings(catalogue, run, scale)
    evaluation_class = load_kind_settings(catalogue.tasks[run.task].kind).evaluation
    with locate_errors(entries):
        return parse_as(
            evaluation_class, drop_places(entries["evaluation"]), _name_settings(run), "evaluation"
        )


@store_with_catalogue
def _resolve_intervention(catalogue: Catalogue, run: Run, scale: str) -> Intervention:
    name = _name_settings(run)
    entries = merge_settings(catalogue, run, scale)
    with locate_errors(entries):
        sections = {title: drop_places(section) for title, section in entries.items()}
        settings = parse_as(Intervention, sections["intervention"], name, "intervention")
        _check_intervention(settings, sections, name)
        return settings


def _check_intervention(settings: Intervention, values: dict[str, dict], name: str) -> None:
    """Check that the model has the blocks and that the task has the split.

    `values`: section -> key -> value.
    """
    layers = values["model"].get("layers")
    blocks = settings.blocks
    if layers and isinstance(blocks, list) and max(blocks) >= layers:
        problem = f"key 'intervention.blocks' is {blocks}, but the model has {layers} blocks"
        raise UserError(f"{name}: {problem}; name some of 0 to {layers - 1}")
    splits = {"train": None}
    validation = values["training"].get("validation")
    if isinstance(validation, dict) and validation.get("split"):
        splits[validation["split"]] = None
    splits |= dict.fromkeys(filter(None, values["evaluation"].get("splits", [])))
    if settings.split not in splits:
        problem = f"key 'intervention.split' is {settings.split!r}, no split of the task"
        raise UserError(f"{name}: {problem}; {suggest_name(settings.split, splits)}")


@store_with_catalogue
def _resolve_variant(catalogue: Catalogue, run: Run, scale: str, precision: str) -> RunSpec:
    """Return the spec of a training.

    It is the same for all seeds but for `seed` and the seed of a parent.
    """
    entries = merge_settings(catalogue, run, scale)
    with locate_errors(entries):
        values = {key: drop_places(section) for key, section in entries.items()}
        if precision != "auto":
            values["training"]["precision"] = precision
        return _make_spec(catalogue, run, scale, precision, values)


def _make_spec(
    catalogue: Catalogue,
    run: Run,
    scale: str,
    precision: str,
    values: dict[str, dict],
) -> RunSpec:
    """Check the settings of a training, and return its spec.

    `values`: section -> key -> value.
    """
    name = _name_settings(run)
    kind = catalogue.tasks[run.task].kind
    kinds = catalogue.methods[run.method].kinds
    if kind not in kinds:
        problem = f"{run.task} is of the kind {kind}, and {run.method} is for {', '.join(kinds)}"
        raise UserError(f"{name}: {problem}; name another task or method")
    sections = parse_sections(values, kind, name)
    _check_blocks(sections, name)
    data = resolve_data(catalogue, run.task, scale)
    return RunSpec(
        run.task,
        kind,
        run.method,
        run.variant,
        run.seed,
        _find_protocol(catalogue, run, scale, data),
        data,
        sections.model,
        sections.problem,
        _find_origin(catalogue, run, scale, precision),
        sections.objective,
        sections.training,
        _find_search(sections, values["search"], name),
        _find_phrases(catalogue, run, kind, sections, name),
    )


def _find_protocol(catalogue: Catalogue, run: Run, scale: str, data: DataSpec) -> str:
    """Return the worst protocol of the data, the scale, the method and the variant of a run."""
    protocols = [data.protocol, catalogue.scales[scale].protocol]
    for block in list_method_blocks(catalogue, run, scale):
        content = block.content
        if isinstance(content, LabelledLayer) and content.protocol:
            protocols.append(content.protocol)
    return find_worst_protocol(*protocols)


def _check_blocks(sections: Sections, name: str) -> None:
    """Raise UserError if the objective reads blocks that the model does not have."""
    if sections.objective is None:
        return
    layers = getattr(sections.model.settings, "layers", 0)
    check_blocks = getattr(sections.objective.settings, "check_blocks", None)
    if layers and check_blocks:
        try:  # the training checks it again on the real model
            check_blocks(layers)
        except ValueError as error:
            raise UserError(f"{name}: objective: {error}") from None


def _find_phrases(
    catalogue: Catalogue,
    run: Run,
    kind: str,
    sections: Sections,
    name: str,
) -> str | None:
    """Return the task's phrases if the objective reads them: no other run depends on them."""
    objective = sections.objective.settings if sections.objective else None
    weight = getattr(objective, "weight", 0)
    mi = getattr(objective, "mi", 0)
    if kind != "seq2seq" or not weight or not mi:
        return None
    phrases = catalogue.tasks[run.task].phrases
    if phrases is None:
        problem = f"objective.mi is {mi}, but catalogue/tasks gives {run.task} no phrases"
        raise UserError(f"{name}: {problem}; add them, or set mi to 0")
    return phrases


def _find_search(sections: Sections, values: dict[str, Any], name: str) -> Search | None:
    """Return the hyperparameter search before a training; None if there is none."""
    search = parse_as(Search, values, name, "search")
    if not search.learning_rate:
        return None
    training = sections.training
    if not training.selection:
        raise UserError(f"{name}: a search needs a validation, and training.validation is none")
    if training.epochs or training.validate_every == "epoch":
        problem = "a search compares trainings of other batches, whose warm-up goes by max_steps"
        advice = "give that and validate_every in steps, and passes as search.epochs"
        raise UserError(f"{name}: {problem}; {advice}")
    return search


def _name_settings(run: Run) -> str:
    """Return what messages call the settings of a run."""
    return f"settings of {run.variant_key}"


@store_with_catalogue
def _read_init(catalogue: Catalogue, run: Run, scale: str) -> Init:
    """Return the settings of the initial weights of a run."""
    entries = merge_settings(catalogue, run, scale)["init"]
    return parse_as(Init, drop_places(entries), _name_settings(run), "init")


def _find_origin(catalogue: Catalogue, run: Run, scale: str, precision: str) -> Origin:
    """Return the source of the initial weights.

    That is None (random), a model of the hub, or a parent run with its digest. Raises UserError for
    an unknown model or parent, and for a run that would start from itself.
    """
    init = _read_init(catalogue, run, scale)
    if init.hub:
        return _find_hub_model(init.hub, init.revision, f"{_name_settings(run)}: init")
    parent = _parse_parent(catalogue, run, init)
    if parent is None:
        return None
    _check_ancestors(catalogue, run, parent, scale)
    return _describe_parent(catalogue, parent, scale, precision)


def _check_ancestors(catalogue: Catalogue, run: Run, parent: Run, scale: str) -> None:
    """Raise UserError if a run starts, over its parent, from itself."""
    chain = [run.variant_key]
    ancestor: Run | None = parent
    while ancestor and ancestor.variant_key not in chain:
        chain.append(ancestor.variant_key)
        init = _read_init(catalogue, ancestor._replace(seed=0), scale)
        ancestor = _parse_parent(catalogue, ancestor, init)
    if ancestor:
        circle = ", which starts from ".join(map(str, (*chain, ancestor.variant_key)))
        raise UserError(f"{_name_settings(run)}: init goes in a circle: {circle}; name another run")


def _find_hub_model(hub: str, revision: str | None, name: str) -> HubModel:
    """Return a declared model of the hub.

    Raises UserError unless it is declared with this revision.
    """
    if not revision:
        advice = "init.revision must name its commit, or version of the package"
        raise UserError(f"{name}.hub is {hub}; {advice}")
    repositories = load_repositories()
    models = {key: entry.revision for key, entry in repositories.items() if entry.kind == "model"}
    if hub not in models:
        suggestion = suggest_name(hub, models)
        raise UserError(f"{name}.hub is {hub}, not a model of sources.yaml; {suggestion}")
    if revision != models[hub]:
        raise UserError(f"{name}.revision is {revision}, in sources.yaml it is {models[hub]}")
    return HubModel(hub=hub, revision=revision)


def _parse_parent(catalogue: Catalogue, run: Run, init: Init) -> Run | None:
    """Return the run that `init` names; None for random weights and for a model of the hub."""
    if init.hub or init.task is None:
        return None
    name = f"{_name_settings(run)}: init"
    if init.variant is None or init.seed is None:
        advice = "init.variant and init.seed must name the run, too"
        raise UserError(f"{name}.task is {init.task}; {advice}")
    seed = run.seed if init.seed == "own" else init.seed
    parent = Run(init.task, init.method or run.method, init.variant, seed)
    try:
        check_run(catalogue, parent)
    except UserError as error:
        raise UserError(f"{name}: {error}") from error
    return parent
