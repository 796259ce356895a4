"""Reads config.yaml, catalogue/ and papers/ into runs and displays. Imports nothing heavy: the Snakefile needs it."""

import hashlib
import importlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from workflow_scripts.data.sources import load_repositories
from workflow_scripts.errors import UserError
from workflow_scripts.interventions import settings as intervention_settings
from workflow_scripts.models import encoder_settings, fused_settings
from workflow_scripts.models import settings as model_settings
from workflow_scripts.objectives import masked_settings, sentence_settings
from workflow_scripts.objectives import settings as objective_settings
from workflow_scripts.reporting.spec import Analysis, Claim, FigureDisplay, TableDisplay, display_analyses
from workflow_scripts.schema import (
    Config,
    Evaluation,
    Init,
    Intervention,
    Method,
    Requests,
    Scale,
    Search,
    Settings,
    Strict,
    Task,
    Training,
    checked,
    nearest,
    read_yaml,
)

SECTIONS = ("model", "objective", "training", "evaluation", "intervention", "init", "search")
CHECKPOINTED = ("prompt", "masked", "sentence", "span")  # kinds that can be trained with gradient_checkpointing
PROTOCOLS = ("paper", "reduced", "stand_in")
MODELS = model_settings.SETTINGS | fused_settings.SETTINGS | encoder_settings.SETTINGS
OBJECTIVES = objective_settings.SETTINGS | masked_settings.SETTINGS | sentence_settings.SETTINGS


@dataclass(frozen=True)
class Run:
    """One training: equal for every paper that asks for it."""

    task: str
    method: str
    variant: str
    seed: int

    def __str__(self) -> str:
        return f"{self.task}/{self.method}/{self.variant}/seed-{self.seed}"


@dataclass(frozen=True)
class Paper:
    requests: Requests
    displays: dict[str, dict]
    analyses: dict[str, dict]
    claims: list[dict]


@dataclass(frozen=True)
class Catalogue:
    root: Path
    tasks: dict[str, Task]
    methods: dict[str, Method]
    scales: dict[str, Scale]
    papers: dict[str, Paper] = field(default_factory=dict)


def _variant(run: Run) -> str:
    return f"{run.task}/{run.method}/{run.variant}"


def canonical_json(content: Any) -> str:
    """One string for equal content: sorted keys, no spaces."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(content: Any) -> str:
    """First 16 hex digits of the sha256 of the canonical JSON."""
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()[:16]


def worst_protocol(*protocols: str) -> str:
    """A result is as far from the paper as the worst of what went into it."""
    return max(protocols, key=PROTOCOLS.index)


def load_config(content: dict | None = None, root: str | Path = ".") -> Config:
    """Validate the configuration: config.yaml under `root`, or `content`, which Snakemake has merged with --config."""
    file = Path(root) / "config.yaml"
    content = read_yaml(file) if content is None else content
    content = {key: value for key, value in (content or {}).items() if key != "pathvars"}
    config = checked(Config, content, "config.yaml")
    scales = _entries(Scale, Path(root) / "catalogue/scales.yaml")
    if config.scale not in scales:
        raise UserError(f"config.yaml: key 'scale' is '{config.scale}'; {nearest(config.scale, scales)}")
    folders = [path.parent.name for path in Path(root).glob("papers/*/requests.yaml")]
    for paper in config.papers:
        if paper not in folders:
            raise UserError(f"config.yaml: key 'papers' names '{paper}'; {nearest(paper, folders)}")
    return config


def _entries(model: type, file: Path) -> dict:
    return {name: checked(model, entry, file, name) for name, entry in read_yaml(file).items()}


@lru_cache(maxsize=8)
def load_catalogue(root: str | Path = ".") -> Catalogue:
    """Read and cross-check catalogue/ and papers/. Raises UserError naming file and key."""
    root = Path(root)
    catalogue = Catalogue(
        root,
        _entries(Task, root / "catalogue/tasks.yaml"),
        _entries(Method, root / "catalogue/methods.yaml"),
        _entries(Scale, root / "catalogue/scales.yaml"),
    )
    for file in sorted(root.glob("papers/*/requests.yaml")):
        displays, claims = (read_yaml(file.with_name(name)) for name in ("displays.yaml", "claims.yaml"))
        _check_displays(displays, file.with_name("displays.yaml"))
        for claim in claims:
            checked(Claim, claim, file.with_name("claims.yaml"), claim.get("claim", ""))
        catalogue.papers[file.parent.name] = Paper(
            checked(Requests, read_yaml(file), file),
            displays["displays"],
            displays.get("analyses") or {},
            claims,
        )
    _check_names(catalogue)
    return catalogue


def _check_displays(content: dict, file: Path) -> None:
    for key in content:
        if key not in ("analyses", "displays"):
            raise UserError(f"{file}: unknown key '{key}'; {nearest(key, ('analyses', 'displays'))}")
    for name, analysis in (content.get("analyses") or {}).items():
        checked(Analysis, analysis, file, f"analyses.{name}")
    for name, display in content["displays"].items():
        model = FigureDisplay if display.get("kind") == "figure" else TableDisplay
        checked(model, display, file, f"displays.{name}")


def _check_names(catalogue: Catalogue) -> None:
    """Every name that one file uses must stand in another."""

    def known(name: str, among: Any, file: str, key: str) -> None:
        if name not in among:
            raise UserError(f"{catalogue.root / file}: key '{key}' names '{name}'; {nearest(name, among)}")

    for name, scale in catalogue.scales.items():
        for method in scale.by_method:
            known(method, catalogue.methods, "catalogue/scales.yaml", f"{name}.by_method")
        for task in (*scale.by_task, *scale.data):
            known(task, catalogue.tasks, "catalogue/scales.yaml", name)
    for name, method in catalogue.methods.items():
        for task in (*method.by_task, *(task for variant in method.variants.values() for task in variant.by_task)):
            known(task, catalogue.tasks, "catalogue/methods.yaml", f"{name}.by_task")
    for paper, entry in catalogue.papers.items():
        for name, display in entry.displays.items():
            for analysis in display_analyses(display):
                known(analysis, entry.analyses, f"papers/{paper}/displays.yaml", f"displays.{name}")
        for name, analysis in entry.analyses.items():
            if "published" in analysis:
                known(analysis["published"], catalogue.papers, f"papers/{paper}/displays.yaml", f"analyses.{name}")
        file = f"papers/{paper}/requests.yaml"
        for number, request in enumerate(entry.requests.requests):
            for task in request.tasks:
                known(task, catalogue.tasks, file, f"requests.{number}.tasks")
            for method, variants in request.methods.items():
                known(method, catalogue.methods, file, f"requests.{number}.methods")
                for variant in variants:
                    known(variant, catalogue.methods[method].variants, file, f"requests.{number}.methods.{method}")
            for scale in request.seeds:
                known(scale, catalogue.scales, file, f"requests.{number}.seeds")


def parse_run(catalogue: Catalogue, run_id: str) -> Run:
    """Read `<task>/<method>/<variant>/seed-<n>`. Raises UserError with the nearest known name."""
    parts = run_id.strip("/").split("/")
    if len(parts) != 4 or not parts[3].removeprefix("seed-").isdecimal() or not parts[3].startswith("seed-"):
        raise UserError(f"run '{run_id}' is not of the form <task>/<method>/<variant>/seed-<n>")
    task, method, variant, seed = parts
    for name, among, what in ((task, catalogue.tasks, "task"), (method, catalogue.methods, "method")):
        if name not in among:
            raise UserError(f"run '{run_id}': no {what} '{name}' in catalogue/; {nearest(name, among)}")
    if variant not in catalogue.methods[method].variants:
        raise UserError(f"run '{run_id}': {nearest(variant, catalogue.methods[method].variants)}")
    return Run(task, method, variant, int(seed.removeprefix("seed-")))


def layers(catalogue: Catalogue, run: Run, scale: str) -> Iterator[tuple[str, Settings]]:
    """The layers of settings that reach a run, first to last; a later one overwrites."""
    task, method, at = catalogue.tasks[run.task], catalogue.methods[run.method], catalogue.scales[scale]
    variant = method.variants[run.variant]
    yield f"catalogue/methods.yaml {run.method}", method.settings
    yield f"catalogue/tasks.yaml {run.task}", task.settings
    for where, settings in (
        (f"catalogue/methods.yaml {run.method}.by_task.{run.task}", method.by_task.get(run.task)),
        (f"catalogue/scales.yaml {scale}", at.settings),
        (f"catalogue/scales.yaml {scale}.by_method.{run.method}", at.by_method.get(run.method)),
        (f"catalogue/scales.yaml {scale}.by_task.{run.task}", at.by_task.get(run.task)),
    ):
        if settings:
            yield where, settings
    yield from _request_layers(catalogue, run)
    yield f"catalogue/methods.yaml {run.method}.variants.{run.variant}", variant.settings
    if run.task in variant.by_task:
        yield (
            f"catalogue/methods.yaml {run.method}.variants.{run.variant}.by_task.{run.task}",
            variant.by_task[run.task],
        )


def _request_layers(catalogue: Catalogue, run: Run) -> Iterator[tuple[str, Settings]]:
    """Settings that papers ask for; two papers may not ask different things of one run."""
    found: dict[str, tuple[str, Settings]] = {}
    for paper, entry in catalogue.papers.items():
        for number, request in enumerate(entry.requests.requests):
            if run.task in request.tasks and run.variant in request.methods.get(run.method, ()):
                where = f"papers/{paper}/requests.yaml requests.{number}"
                found.setdefault(canonical_json(request.settings.model_dump()), (where, request.settings))
    if len(found) > 1:
        places = " and ".join(where for where, _ in found.values())
        raise UserError(
            f"{places} ask for different settings of {_variant(run)}; give one of them a variant of its own"
        )
    yield from found.values()


def merged(catalogue: Catalogue, run: Run, scale: str) -> dict[str, dict[str, tuple[Any, str]]]:
    """Section -> key -> (value, its origin). Keys of model and objective must stand in the method's own settings or be
    settings of its module. A layer that names another module begins the section anew: no key of the one before is the
    new one's."""
    result: dict[str, dict[str, tuple[Any, str]]] = {section: {} for section in SECTIONS}
    fixed = {kind.__name__.lower(): kind.model_fields for kind in (Training, Evaluation, Intervention, Init, Search)}
    for where, settings in layers(catalogue, run, scale):
        for section in SECTIONS:
            given = getattr(settings, section)
            begins = section not in fixed and "module" in given and given["module"] != _module(result[section])
            if begins:
                result[section] = {}
            known = fixed.get(section) or {*result[section], *_module_settings(section, result[section])}
            for key, value in given.items():
                if key not in known and not begins:
                    file, entry = where.split(" ")
                    path = f"{entry}.settings.{section}.{key}"
                    raise UserError(f"{file}: unknown key '{path}'; {nearest(key, known)}")
                result[section][key] = (value, where)
    return result


def _module_settings(section: str, given: dict[str, tuple[Any, str]]) -> list[str]:
    """Names of the settings of the module that a section names; none where it names none that is known."""
    known = MODELS if section == "model" else objective_settings.SETTINGS
    module = known.get(_module(given))
    return [field.name for field in fields(module)] if module else []


def _module(section: dict[str, tuple[Any, str]]) -> str | None:
    return section["module"][0] if "module" in section else None


@lru_cache(maxsize=10_000)
def _resolved(root: Path, run: Run, scale: str, precision: str) -> str:
    catalogue = load_catalogue(root)
    sections = {
        section: {key: value for key, (value, _) in entries.items()}
        for section, entries in merged(catalogue, run, scale).items()
    }
    kind, kinds = catalogue.tasks[run.task].kind, catalogue.methods[run.method].kinds
    if kind not in kinds:
        raise UserError(
            f"settings of {_variant(run)}: {run.task} is of the kind {kind}, and {run.method} is for {', '.join(kinds)}"
        )
    training = sections["training"]
    settings = checked(Training, training | _tuples(training), f"settings of {_variant(run)}", "training")
    if settings.gradient_checkpointing and kind not in CHECKPOINTED:
        raise UserError(
            f"settings of {_variant(run)}: training.gradient_checkpointing is for tasks of the kinds "
            f"{', '.join(CHECKPOINTED)}, and {run.task} is of the kind {kind}"
        )
    if settings.gpus == 1:  # the same run as one that does not name it
        training.pop("gpus", None)
    check_modules(sections, settings.gpus, f"settings of {_variant(run)}")
    data = resolve_data(catalogue, run.task, scale)
    return canonical_json(
        {
            "task": run.task,
            "kind": kind,
            "method": run.method,
            "variant": run.variant,
            "seed": run.seed,
            "protocol": worst_protocol(data["protocol"], catalogue.scales[scale].protocol),
            "data": data,
            "model": sections["model"],
            "objective": sections["objective"],
            "training": training | {"precision": settings.precision if precision == "auto" else precision},
            "init": _origin(catalogue, run, sections["init"], scale, precision),
            **_phrases(catalogue, run, sections["objective"]),
            **_search(run, sections["search"], settings),
        }
    )


def check_modules(sections: dict[str, dict], gpus: int, where: str) -> None:
    """Check the settings of model and objective, and that with `gpus` > 1 a batch can be divided. Raises UserError."""
    for section, known in (("model", MODELS), ("objective", OBJECTIVES)):
        given = dict(sections[section])
        module = given.pop("module")
        if module not in known:
            raise UserError(f"{where}: {section}.module is '{module}'; {nearest(module, known)}")
        settings = model_settings.read_settings(known[module], given, f"{where}: {section}")
        # Where nothing is said of it, nobody has thought of it.
        indivisible = getattr(settings, "indivisible", lambda: "its settings do not say that one can")
        if gpus > 1 and (why := indivisible()):
            raise UserError(
                f"{where}: training.gpus is {gpus}, but no batch can be divided with {section} {module}: {why}; "
                "set gpus to 1"
            )


def _phrases(catalogue: Catalogue, run: Run, objective: dict) -> dict[str, str]:
    """The task's phrases where the objective of a sequence-to-sequence run reads them: no other run depends on them."""
    task = catalogue.tasks[run.task]
    if task.kind != "seq2seq" or not (objective.get("weight") and objective.get("mi")):
        return {}
    if task.phrases is None:
        raise UserError(
            f"settings of {_variant(run)}: objective.mi is {objective['mi']}, but catalogue/tasks.yaml gives "
            f"{run.task} no phrases; add them, or set mi to 0"
        )
    return {"phrases": task.phrases}


def _search(run: Run, given: dict, training: Training) -> dict[str, dict]:
    """The search that comes before the trainings of a variant; of runs without one, the spec does not speak of it."""
    search = checked(Search, given, f"settings of {_variant(run)}", "search")
    return {"search": search.model_dump()} if search.learning_rate and training.max_steps else {}


def _origin(catalogue: Catalogue, run: Run, given: dict, scale: str, precision: str) -> dict[str, str] | None:
    """Where the first weights of `run` come from: None (drawn at random), a model of the hub, or a parent run, whose
    spec then belongs to the run's own."""
    where = f"settings of {_variant(run)}"
    init = checked(Init, given, where, "init")
    if init.hub:
        if not init.revision:
            raise UserError(f"{where}: init.hub is {init.hub}; init.revision must name its commit")
        models = {name: entry.revision for name, entry in load_repositories().items() if entry.kind == "model"}
        if init.hub not in models:
            raise UserError(
                f"{where}: init.hub is {init.hub}, not a model of sources.yaml; {nearest(init.hub, models)}"
            )
        if init.revision != models[init.hub]:
            raise UserError(f"{where}: init.revision is {init.revision}, in sources.yaml it is {models[init.hub]}")
        return {"hub": init.hub, "revision": init.revision}
    if init.task is None:
        return None
    if init.variant is None or init.seed is None:
        raise UserError(f"{where}: init.task is {init.task}; init.variant and init.seed must name the run, too")
    seed = run.seed if init.seed == "own" else init.seed
    parent = parse_run(catalogue, f"{init.task}/{init.method or run.method}/{init.variant}/seed-{seed}")
    if (parent.task, parent.method, parent.variant) == (run.task, run.method, run.variant):
        raise UserError(f"{where}: init names the run itself")
    own = (
        {"seed": "own"} if init.seed == "own" else {}
    )  # resolve_run puts the parent of the run's own seed in its place
    return {"run": str(parent), "spec": digest(resolve_run(catalogue, parent, scale, precision)), **own}


def _tuples(section: dict) -> dict:
    """YAML has no tuples; strict validation wants one for the two betas."""
    return {key: tuple(value) for key, value in section.items() if isinstance(value, list)}


def resolve_run(catalogue: Catalogue, run: Run | str, scale: str, precision: str = "auto") -> dict:
    """The spec of a run: everything that can change its result, but for the code.

    `precision` is config.yaml's: it holds for the run and those that it comes from; `auto` leaves each its own.
    """
    run = parse_run(catalogue, run) if isinstance(run, str) else run
    # Seeds share everything else: thousands of runs are resolved as fast as their variants.
    spec = json.loads(_resolved(catalogue.root, replace(run, seed=0), scale, precision))
    if spec["init"] and "seed" in spec["init"]:
        parent = replace(parse_run(catalogue, spec["init"]["run"]), seed=run.seed)
        spec["init"] = {"run": str(parent), "spec": digest(resolve_run(catalogue, parent, scale, precision))}
    return spec | {"seed": run.seed}


def searched(catalogue: Catalogue, run: Run, scale: str, precision: str = "auto") -> Run | None:
    """The run whose learning rate and batch size are searched before `run` is trained; None where nothing is."""
    search = json.loads(_resolved(catalogue.root, replace(run, seed=0), scale, precision)).get("search")
    return replace(run, seed=search["seed"]) if search else None


def precision_as_made(catalogue: Catalogue, run: Run | str, scale: str, made: str) -> str:
    """The `precision` of config.yaml by which a run that was trained with the precision `made` is resolved again."""
    return "auto" if resolve_run(catalogue, run, scale)["training"]["precision"] == made else made


def parent(catalogue: Catalogue, run: Run, scale: str, precision: str = "auto") -> Run | None:
    """The run that `run` starts from; None where it starts from none."""
    origin = resolve_run(catalogue, run, scale, precision)["init"]
    return parse_run(catalogue, origin["run"]) if origin and "run" in origin else None


def resolve_evaluation(catalogue: Catalogue, run: Run, scale: str) -> dict:
    """How a trained run is scored: splits, beam, longest output."""
    return dict(_section(catalogue.root, replace(run, seed=0), scale, Evaluation))


def resolve_intervention(catalogue: Catalogue, run: Run, scale: str) -> dict:
    """What is changed in a trained run and its prompts."""
    return dict(_section(catalogue.root, replace(run, seed=0), scale, Intervention))


def resolve_candidates(catalogue: Catalogue, task: str, scale: str) -> dict:
    """What the words of a task's items may be replaced with: split, sources, options. The same for every method."""
    layers = [catalogue.tasks[task].settings, catalogue.scales[scale].settings]
    if task in catalogue.scales[scale].by_task:
        layers.append(catalogue.scales[scale].by_task[task])
    merged = {key: value for layer in layers for key, value in layer.intervention.items()}
    settings = checked(Intervention, merged, f"settings of task {task} at scale {scale}", "intervention")
    options = checked(
        intervention_settings.Options, settings.candidates, f"settings of task {task}", "intervention.candidates"
    )
    return {
        "split": settings.split,
        "options": settings.candidates,
        "sources": intervention_settings.sources_of(options),
    }


@lru_cache(maxsize=10_000)
def _section(root: Path, run: Run, scale: str, kind: type[Strict]) -> dict:
    name = kind.__name__.lower()
    section = {key: value for key, (value, _) in merged(load_catalogue(root), run, scale)[name].items()}
    return checked(kind, section, f"settings of {_variant(run)}", name).model_dump()


@lru_cache(maxsize=10_000)
def _data_spec(root: Path, task: str, scale: str) -> str:
    catalogue = load_catalogue(root)
    entry, cut = catalogue.tasks[task], catalogue.scales[scale].data.get(task)
    options, sources, prepare, protocol = entry.options, entry.sources, entry.prepare, entry.protocol
    if cut:
        options = options | cut.options
        sources = sources if cut.sources is None else cut.sources
        prepare = cut.prepare or prepare
        protocol = worst_protocol(protocol, cut.protocol or protocol)
    checked(importlib.import_module(prepare).Options, options, f"options of task {task} at scale {scale}")
    return canonical_json(
        {"task": task, "prepare": prepare, "options": options, "sources": sources, "protocol": protocol}
    )


def resolve_data(catalogue: Catalogue, task: str, scale: str) -> dict:
    """What `prepare` is to make for a task at a scale."""
    if task not in catalogue.tasks:
        raise UserError(f"no task '{task}' in catalogue/tasks.yaml; {nearest(task, catalogue.tasks)}")
    if scale not in catalogue.scales:
        raise UserError(f"no scale '{scale}' in catalogue/scales.yaml; {nearest(scale, catalogue.scales)}")
    return json.loads(_data_spec(catalogue.root, task, scale))


def requested_runs(catalogue: Catalogue, config: Config) -> dict[Run, list[str]]:
    """Every run of the chosen papers at the chosen scale, in the files' order, with the papers that ask for it.

    A run that others start from comes before the first of them.
    """
    extra = config.extra or catalogue.scales[config.scale].extra
    runs: dict[Run, list[str]] = {}
    for paper in config.papers:
        for request in catalogue.papers[paper].requests.requests:
            if config.scale not in request.seeds or (request.extra and not extra):
                continue
            for task in request.tasks:
                for method, variants in request.methods.items():
                    for variant in variants:
                        for seed in config.seeds or request.seeds[config.scale]:
                            for asked in _lineage(catalogue, Run(task, method, variant, seed), config):
                                askers = runs.setdefault(asked, [])
                                askers += [paper] if paper not in askers else []
    return runs


def _lineage(catalogue: Catalogue, run: Run, config: Config) -> list[Run]:
    """The run behind those that it comes from."""
    before = parent(catalogue, run, config.scale, config.precision)
    return [*(_lineage(catalogue, before, config) if before else ()), run]
