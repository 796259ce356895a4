# What the rules share: the validated configuration, and functions from wildcards to inputs, parameters and resources.
# A rule's parameter `facts` stands for all that can change its result, as one string: Snakemake reruns the job when the
# string changes.

import atexit
import gc
import json
import re
from functools import cache
from shlex import quote
from shutil import which

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.hashing import canonical_json, digest
from workflow_scripts.common.yaml_files import read_entries
from workflow_scripts.config.display_schema import display_analyses
from workflow_scripts.config.displays import (
    analysis_sources,
    claimed,
    display_runs,
    intervened,
    intervened_runs,
    score_files,
    shown_displays,
)
from workflow_scripts.config.loading import load_catalogue, load_config
from workflow_scripts.config.requested import requested_runs
from workflow_scripts.config.run_specs import parent, resolve_run, searched
from workflow_scripts.config.runs import Run, parse_run
from workflow_scripts.config.task_specs import resolve_candidates, resolve_data
from workflow_scripts.data.sources import load_repositories, load_sources
from workflow_scripts.planning import resources
from workflow_scripts.planning.downloads import hub_models, source_names
from workflow_scripts.provenance.fingerprints import asked, caption, of_job, store_definitions
from workflow_scripts.timers import one_timer_at_a_time

# A plan of thousands of jobs is millions of objects that live until it is carried out: to look for garbage among them
# takes seconds, also when Python ends.
gc.disable()
atexit.register(gc.freeze)

one_timer_at_a_time()


def typed(value):
    """`--config seeds=[1,2] extra=true` arrives as strings: give numbers and truth values their types."""
    if isinstance(value, dict):
        return {key: typed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [typed(item) for item in value]
    if not isinstance(value, str):
        return value
    try:
        scalar = json.loads(value)
    except ValueError:
        return value
    return scalar if isinstance(scalar, int | float) else value


read_entries("config.yaml")  # refuses a key that stands twice, of which Snakemake takes the second
CONFIG = load_config(typed(config))
CATALOGUE = load_catalogue()


# The image that envs/container.def builds; used with `--sdm apptainer` only.
container: "envs/recompose.sif"


def any_of(names):
    return "|".join(sorted(map(re.escape, names)))


wildcard_constraints:
    # The catalogue's own names: a misspelled target is refused at once, with no rule that could make it.
    scale=any_of(CATALOGUE.scales),
    source=any_of(load_sources()),
    model=any_of(name for name, entry in load_repositories().items() if entry.kind == "model"),
    task=any_of(CATALOGUE.tasks),
    method=any_of(CATALOGUE.methods),
    variant=any_of({variant for method in CATALOGUE.methods.values() for variant in method.variants}),
    paper=any_of(CATALOGUE.papers),
    display=any_of({name for paper in CATALOGUE.papers.values() for name in paper.displays}),
    analysis=any_of({name for paper in CATALOGUE.papers.values() for name in paper.analyses}),
    # The folder's whole name, so that task/method/variant/seed reads as the run's name.
    seed=r"seed-\d+",


FACTS = {}  # of the jobs of this call, by their short form


@cache
def job_facts(rule, **wildcards):
    found = of_job(CATALOGUE, CONFIG, rule, wildcards)
    short = str(found)
    FACTS[short] = found
    return short


def facts_of(rule, **same):
    """The parameter `facts` of a rule's jobs. `same` takes the place of wildcards that do not change it: facts that
    many jobs share are found once."""

    def facts(wildcards):
        return job_facts(rule, **(dict(wildcards.items()) | same))

    return facts


onstart:
    store_definitions(FACTS.values())


# Inputs and parameters of data.smk


def source_files(wildcards):
    sources = resolve_data(CATALOGUE, wildcards.task, wildcards.scale)["sources"]
    return [f"results/downloads/{source}" for source in sources]


def source_manifests(wildcards):
    return [f"{file}.json" for file in source_files(wildcards)]


# Tasks with large data, and scales at which these are not stand-ins.
LARGE = {
    "task": [name for name, task in CATALOGUE.tasks.items() if task.disk],
    "scale": [
        scale
        for scale in CATALOGUE.scales
        if any(task.disk and resolve_data(CATALOGUE, name, scale)["sources"] for name, task in CATALOGUE.tasks.items())
    ],
}


def downloads():
    """All that the chosen papers need from the network."""
    files, models = set(), set()
    for paper in CONFIG.papers:
        runs = asked(CONFIG, paper, CONFIG.scale)
        files |= source_names(CATALOGUE, CONFIG.scale, paper, runs)
        models |= hub_models(CATALOGUE, CONFIG.scale, CONFIG.precision, runs)
    return [f"results/downloads/{file}" for file in files] + [
        f"results/downloads/models/{model}/model.json" for model in models
    ]


# Inputs of intervene.smk


def candidate_sources(wildcards):
    sources = resolve_candidates(CATALOGUE, wildcards.task, wildcards.scale)["sources"]
    return [f"results/downloads/{source}" for source in sources]


def candidate_source_manifests(wildcards):
    return [f"{file}.json" for file in candidate_sources(wildcards)]


# Parameters of train.smk and evaluate.smk

# A string that Snakemake fills in: for thousands of jobs that is faster than a function.
RUN = "{task}/{method}/{variant}/{seed}"


@cache
def search_seed(task, method, variant, scale):
    """Of the search that comes before the trainings of a variant, the same for all of them; None where there is none."""
    run = parse_run(CATALOGUE, f"{task}/{method}/{variant}/seed-0")  # says so, if the method has no such variant
    found = searched(CATALOGUE, run, scale, CONFIG.precision)
    return f"seed-{found.seed}" if found else None


def seed_of(wildcards):
    """Of a job that trains: a search has its seed from its settings."""
    if hasattr(wildcards, "seed"):
        return wildcards.seed
    variant = (wildcards.task, wildcards.method, wildcards.variant)
    if seed := search_seed(*variant, wildcards.scale):
        return seed
    raise UserError(f"nothing is searched for {'/'.join(variant)} at scale {wildcards.scale}; its settings say of none")


@cache
def origin(task, method, variant, seed, scale):
    """(manifest, folder of the weights) that a run starts from; (None, None) where it starts from random ones."""
    run = parse_run(CATALOGUE, f"{task}/{method}/{variant}/{seed}")  # says so, if the method has no such variant
    if before := parent(CATALOGUE, run, scale, CONFIG.precision):
        folder = f"results/{scale}/runs/{before}"
        return f"{folder}/run.json", f"{folder}/checkpoint"
    init = resolve_run(CATALOGUE, run, scale, CONFIG.precision)["init"]
    folder = f"results/downloads/models/{init['hub']}" if init else None
    return (f"{folder}/model.json", folder) if folder else (None, None)


def origin_manifest(wildcards):
    """What says which first weights a run has, and holds their sha256."""
    manifest, _ = origin(wildcards.task, wildcards.method, wildcards.variant, seed_of(wildcards), wildcards.scale)
    return [manifest] if manifest else []


def parent_checkpoint(wildcards):
    manifest, folder = origin(wildcards.task, wildcards.method, wildcards.variant, seed_of(wildcards), wildcards.scale)
    return [f"{folder}/model.safetensors"] if manifest and manifest.endswith("run.json") else []


def init_option(wildcards):
    _, folder = origin(wildcards.task, wildcards.method, wildcards.variant, seed_of(wildcards), wildcards.scale)
    return f"--init {folder}" if folder else ""


def train_state(wildcards):
    """Where a killed run goes on from; its name changes with the spec, the data and their code, so that no run goes on
    from another's state. Never an output: Snakemake deletes those of a failed job."""
    trained = job_facts("train", **dict(wildcards.items()))
    prepared = job_facts("prepare", scale=wildcards.scale, task=wildcards.task)
    before = [job_facts("search", **search_wildcards(wildcards))] if chosen_settings(wildcards) else []
    return f"results/{wildcards.scale}/state/{RUN.format(**wildcards)}/{digest([trained, prepared, *before])}"


def search_wildcards(wildcards):
    return {name: value for name, value in dict(wildcards.items()).items() if name != "seed"}


def chosen_settings(wildcards):
    """The file with the learning rate and the batch size of a run, where these are searched."""
    found = search_seed(wildcards.task, wildcards.method, wildcards.variant, wildcards.scale)
    folder = "results/{scale}/search/{task}/{method}/{variant}".format(**wildcards)
    return [f"{folder}/chosen.json"] if found else []


def search_option(wildcards):
    return " ".join(f"--search {file}" for file in chosen_settings(wildcards))


def search_state(wildcards):
    """Where a killed search goes on from; see train_state."""
    jobs = [job_facts("search", **dict(wildcards.items()))]
    jobs.append(job_facts("prepare", scale=wildcards.scale, task=wildcards.task))
    return "results/{scale}/state/{task}/{method}/{variant}/search/{jobs}".format(**wildcards, jobs=digest(jobs))


# Inputs and parameters of analyse.smk and report.smk. Each command is told its runs: config.yaml alone does not say
# them when a call has changed it by --config.


def analysis_entry(wildcards):
    return CATALOGUE.papers[wildcards.paper].analyses[wildcards.analysis]


def analysis_runs(wildcards):
    return display_runs(analysis_entry(wildcards), asked(CONFIG, wildcards.paper, wildcards.scale))


def analysis_run_names(wildcards):
    return list(map(str, analysis_runs(wildcards)))


def analysis_inputs(wildcards):
    folder, runs = f"results/{wildcards.scale}", analysis_runs(wildcards)
    prepared = sorted({f"{folder}/data/{run.task}/dataset.json" for run in runs})
    variants = intervened([analysis_entry(wildcards)])
    answers = [f"{folder}/runs/{run}/interventions/scores.csv" for run in runs if run.unseeded in variants]
    scored, reads_searches = (analysis_entry(wildcards).get(name) for name in ("scored", "searched"))
    scores = [f"{folder}/runs/{run}/eval/scores.csv" for run in runs if scored]
    searches = {
        f"{folder}/search/{run.task}/{run.method}/{run.variant}/chosen.json"
        for run in runs
        if reads_searches and search_seed(run.task, run.method, run.variant, wildcards.scale)
    }
    manifests = [f"{file}.json" for file in analysis_downloads(wildcards)]
    trainings = [f"{folder}/runs/{run}/run.json" for run in runs]
    return trainings + scores + sorted(searches) + answers + prepared + manifests


def analysis_downloads(wildcards):
    needed = analysis_sources(CATALOGUE, analysis_entry(wildcards), analysis_runs(wildcards), wildcards.scale)
    return [f"results/downloads/{source}" for source in needed]


def analysis_checkpoints(wildcards):
    folder = f"results/{wildcards.scale}/runs"
    return [f"{folder}/{run}/checkpoint/model.safetensors" for run in analysis_runs(wildcards)]


def shown(paper, displays, scale):
    """What displays read. One file stands for all of a run, and one for all of an analysis."""
    runs = dict.fromkeys(run for display in displays for run in display_runs(display, asked(CONFIG, paper, scale)))
    analyses = dict.fromkeys(name for display in displays for name in display_analyses(display))
    variants = intervened(displays)
    scores = [f"results/{scale}/{file}" for run in runs for file in score_files(run, variants)]
    return scores + [f"results/{scale}/analyses/{paper}/{analysis}/analysis.json" for analysis in analyses]


def display_entry(wildcards):
    return CATALOGUE.papers[wildcards.paper].displays[wildcards.display]


def display_inputs(wildcards):
    return shown(wildcards.paper, [display_entry(wildcards)], wildcards.scale)


def figure_inputs(wildcards):
    """After another training the scores may be the same, and the curves are not."""
    display, folder = display_entry(wildcards), f"results/{wildcards.scale}/runs"
    runs = display_runs(display, asked(CONFIG, wildcards.paper, wildcards.scale)) if display.get("curves") else []
    return display_inputs(wildcards) + [f"{folder}/{run}/training.csv" for run in runs]


def table_inputs(wildcards):
    """Below its numbers a table says how data were made that are not the papers' own."""
    display, analyses = display_entry(wildcards), CATALOGUE.papers[wildcards.paper].analyses
    entries = [display, *(analyses[name] for name in display_analyses(display))]
    runs = asked(CONFIG, wildcards.paper, wildcards.scale)
    tasks = dict.fromkeys(run.task for entry in entries for run in display_runs(entry, runs))
    data = [f"results/{wildcards.scale}/data/{task}/dataset.json" for task in tasks]
    return display_inputs(wildcards) + data


def display_run_names(wildcards):
    return [str(run) for run in display_runs(display_entry(wildcards), asked(CONFIG, wildcards.paper, wildcards.scale))]


def display_group(wildcards):
    return display_entry(wildcards)["group"]


def display_labels(wildcards):
    """One label: of two, the report makes a switch when a group has two displays, and then finds neither."""
    return {"display": f"{display_entry(wildcards)['source']}: {display_entry(wildcards)['title']}"}


def display_caption(wildcards):
    return caption(CATALOGUE, wildcards.paper, wildcards.display)


def claims_inputs(wildcards):
    shown_files = []
    for paper in CONFIG.papers:
        displays = shown_displays(CATALOGUE.papers[paper], asked(CONFIG, paper, wildcards.scale))
        shown_files += shown(paper, claimed(CATALOGUE.papers[paper], displays).values(), wildcards.scale)
    # The overview beside the claims says what was run: all of it, whether a claim reads it or not.
    asked_runs = (f"results/{wildcards.scale}/runs/{run}/run.json" for run in claims_runs(wildcards))
    return list(dict.fromkeys([*shown_files, *asked_runs]))


def claims_runs(wildcards):
    return [str(run) for paper in CONFIG.papers for run in asked(CONFIG, paper, wildcards.scale)]


def run_files():
    """What is made of each run of the chosen papers, but for its weights: they may be deleted when it has been scored."""
    runs = requested_runs(CATALOGUE, CONFIG)
    changed = {
        run: None
        for paper in CONFIG.papers
        for run in intervened_runs(CATALOGUE, paper, asked(CONFIG, paper, CONFIG.scale))
    }
    made = [(runs, [*rules.train.output, *rules.evaluate.output]), (changed, rules.intervene.output)]
    return [
        str(file).format(scale=CONFIG.scale, **vars(run) | {"seed": f"seed-{run.seed}"})
        for names, outputs in made
        for run in names
        for file in outputs
        if not str(file).endswith(".safetensors")
    ]


def shown_here(paper):
    return shown_displays(CATALOGUE.papers[paper], asked(CONFIG, paper, CONFIG.scale))


def analyses(outputs):
    """What is made of each analysis that a table or figure of the chosen papers shows."""
    names = {
        (paper, analysis): None
        for paper in CONFIG.papers
        for display in shown_here(paper).values()
        for analysis in display_analyses(display)
    }
    return [
        str(output).format(scale=CONFIG.scale, paper=paper, analysis=analysis)
        for paper, analysis in names
        for output in outputs
    ]


def displays(kind, outputs):
    """What a rule makes of each table or figure of the chosen papers."""
    names = [
        {"paper": paper, "display": name}
        for paper in CONFIG.papers
        for name, display in shown_here(paper).items()
        if display["kind"] == kind
    ]
    return [str(output).format(scale=CONFIG.scale, **name) for name in names for output in outputs]


# Resources


@cache
def device():
    """Where a job will train, as far as it can be known here: a job of a cluster gets the GPU that it asks for, and the
    machine that submits it needs none."""
    if CONFIG.device != "auto":
        return CONFIG.device
    return "cuda" if not workflow.local_exec or which("nvidia-smi") else "cpu"


def run_resource(name):
    """Of a job on a run, or of its search. A function, since Snakemake does not know its executor, and with it the
    device, when it reads this."""

    def resource(wildcards, attempt):
        # The same for all seeds of a variant.
        run = Run(wildcards.task, wildcards.method, wildcards.variant, seed=0)
        return getattr(resources.of_run(run, wildcards.scale, device(), attempt, CONFIG.gpu_option), name)

    return resource


def fixed_resource(rule, name):
    return lambda wildcards, attempt: getattr(resources.fixed(rule, attempt), name)
