"""Compute the inputs, parameters and resources of a job from its wildcards.

Nothing here needs Snakemake, which calls the methods of `Workflow` with the wildcards.
"""

import inspect
from collections.abc import Callable, Iterable
from functools import cache
from shutil import which
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import digest
from workflow_scripts.config.catalogue import Catalogue, Run, parse_run
from workflow_scripts.config.display_schema import list_display_analyses
from workflow_scripts.config.displays import (
    find_intervened_variants,
    list_analysis_sources,
    score_files,
    select_claimed_displays,
    select_display_runs,
    select_shown_displays,
)
from workflow_scripts.config.paths import (
    DOWNLOADS,
    analysis_folder,
    data_folder,
    intervention_folder,
    manifest_file,
    run_folder,
    search_folder,
)
from workflow_scripts.config.schema import Config
from workflow_scripts.config.specs import (
    find_parent_run,
    find_search_run,
    resolve_candidates,
    resolve_data,
    resolve_run,
)
from workflow_scripts.provenance.fingerprints import (
    Fingerprint,
    fingerprint_job,
    list_paper_runs,
    read_caption,
    store_definitions,
)
from workflow_scripts.workflow import resources
from workflow_scripts.workflow.targets import locate_downloads, locate_manifests
from workflow_scripts.workflow.wildcards import Wildcards


class Workflow:
    """The jobs of one configuration.

    `submits_jobs` returns whether jobs go to a cluster. It is a function because Snakemake knows only after it has
    read the rules.
    """

    def __init__(self, config: Config, catalogue: Catalogue, submits_jobs: Callable[[], bool] = lambda: False) -> None:
        self.config, self.catalogue, self.submits_jobs = config, catalogue, submits_jobs
        self.fingerprints: dict[str, Fingerprint] = {}  # of this invocation's jobs, by their short form
        # Thousands of jobs share the answers of these.
        self._fingerprint, self._init = cache(self._find_fingerprint), cache(self._find_init)
        self._search_seed, self._device = cache(self._find_search_seed), cache(self._find_device)

    # Fingerprints

    def fingerprint(self, rule: str, **shared: str) -> Callable[[Wildcards], str]:
        """Return a function that fingerprints a job of `rule`. Snakemake reruns the job when it changes.

        `shared` replaces wildcards that do not change it, so that jobs with the same fingerprint compute it once.
        """
        return _fast(lambda wildcards: self._fingerprint(rule, **(dict(wildcards.items()) | shared)))

    def _find_fingerprint(self, rule: str, **wildcards: str) -> str:
        found = fingerprint_job(self.catalogue, self.config, rule, wildcards)
        if found:
            self.fingerprints[str(found)] = found
        return str(found)

    def store_fingerprints(self) -> None:
        """Store the definitions of this invocation's code digests, so that a later `why` can name the changed ones."""
        store_definitions(self.fingerprints.values())

    # fetch, prepare, candidates

    def list_data_sources(self, wildcards: Wildcards) -> list[str]:
        """Return the downloaded files that the data of a task are made of."""
        return locate_downloads(resolve_data(self.catalogue, wildcards.task, wildcards.scale)["sources"])

    def list_data_manifests(self, wildcards: Wildcards) -> list[str]:
        """Return the manifests of `list_data_sources`."""
        return locate_manifests(self.list_data_sources(wildcards))

    def list_candidate_sources(self, wildcards: Wildcards) -> list[str]:
        """Return the downloaded files that the replacement words of a task are made of."""
        return locate_downloads(resolve_candidates(self.catalogue, wildcards.task, wildcards.scale)["sources"])

    def list_candidate_manifests(self, wildcards: Wildcards) -> list[str]:
        """Return the manifests of `list_candidate_sources`."""
        return locate_manifests(self.list_candidate_sources(wildcards))

    # search, train

    def _find_search_seed(self, task: str, method: str, variant: str, scale: str) -> str | None:
        """Return the seed of the search before the trainings of a variant; None if there is no search."""
        run = parse_run(self.catalogue, f"{task}/{method}/{variant}/seed-0")  # raises if there is no such variant
        found = find_search_run(self.catalogue, run, scale, self.config.precision)
        return f"seed-{found.seed}" if found else None

    def _find_init(self, task: str, method: str, variant: str, seed: str, scale: str) -> tuple[str, str] | None:
        """Return (manifest, folder) of the initial weights of a run; None if they are random."""
        run = parse_run(self.catalogue, f"{task}/{method}/{variant}/{seed}")  # raises if there is no such variant
        if before := find_parent_run(self.catalogue, run, scale, self.config.precision):
            folder = f"results/{scale}/{run_folder(before)}"
            return f"{folder}/run.json", f"{folder}/checkpoint"
        init = resolve_run(self.catalogue, run, scale, self.config.precision)["init"]
        folder = f"{DOWNLOADS}/models/{init['hub']}" if init else ""
        return (f"{folder}/model.json", folder) if folder else None

    def _init_of(self, wildcards: Wildcards) -> tuple[str, str] | None:
        """Return (manifest, folder) for a search or a training. A search has its seed from its settings."""
        variant = (wildcards.task, wildcards.method, wildcards.variant)
        seed = dict(wildcards.items()).get("seed") or self._search_seed(*variant, wildcards.scale)
        if not seed:
            where = f"{'/'.join(variant)} has no search at scale {wildcards.scale}"
            raise UserError(f"{where}; add `search` to its settings")
        return self._init(*variant, seed, wildcards.scale)

    def find_init_manifest(self, wildcards: Wildcards) -> list[str]:
        """Return the manifest with the sha256 of the initial weights."""
        return _manifest(self._init_of(wildcards))

    def find_init_checkpoint(self, wildcards: Wildcards) -> list[str]:
        """Return the initial weights, if a run of the workflow made them."""
        return _checkpoint(self._init_of(wildcards))

    def format_init_option(self, wildcards: Wildcards) -> str:
        """Return the option of `train` and `search` for initial weights."""
        found = self._init_of(wildcards)
        return f"--init={found[1]}" if found else ""

    def find_search_result(self, wildcards: Wildcards) -> list[str]:
        """Return the file with the learning rate and batch size of a run, if a search chooses them."""
        variant = (wildcards.task, wildcards.method, wildcards.variant)
        found = self._search_seed(*variant, wildcards.scale)
        return [f"results/{wildcards.scale}/{search_folder(variant)}/chosen.json"] if found else []

    def format_search_option(self, wildcards: Wildcards) -> str:
        """Return the option of `train` for the result of a search."""
        return " ".join(f"--search={file}" for file in self.find_search_result(wildcards))

    def locate_training_state(self, wildcards: Wildcards) -> str:
        """Return the folder from which a killed training resumes.

        It depends on the spec, the data and their code, so that no run resumes from the state of another. It is no
        output, because Snakemake deletes the outputs of a failed job.
        """
        given = dict(wildcards.items())
        jobs = [self._fingerprint("train", **given), self._data_fingerprint(wildcards)]
        if self.find_search_result(wildcards):
            del given["seed"]
            jobs.append(self._fingerprint("search", **given))
        return f"{_state_folder(wildcards)}/{wildcards.seed}/{digest(jobs)}"

    def locate_search_state(self, wildcards: Wildcards) -> str:
        """Return the folder from which a killed search resumes."""
        jobs = [self._fingerprint("search", **dict(wildcards.items())), self._data_fingerprint(wildcards)]
        return f"{_state_folder(wildcards)}/search/{digest(jobs)}"

    def _data_fingerprint(self, wildcards: Wildcards) -> str:
        return self._fingerprint("prepare", scale=wildcards.scale, task=wildcards.task)

    # evaluate, intervene

    def _scored(self, wildcards: Wildcards) -> tuple[str, str] | None:
        """Return (manifest, folder) of the weights that a job scores; None if they are random."""
        if "@" in wildcards.variant:
            return self._init_of(wildcards)
        folder = _run_folder(wildcards)
        return f"{folder}/run.json", f"{folder}/checkpoint"

    def find_scored_manifest(self, wildcards: Wildcards) -> list[str]:
        """Return the manifest with the sha256 of the weights that a job scores."""
        return _manifest(self._scored(wildcards))

    def find_scored_checkpoint(self, wildcards: Wildcards) -> list[str]:
        """Return the weights that a job scores, if a run of the workflow made them."""
        return _checkpoint(self._scored(wildcards))

    def list_scored_options(self, wildcards: Wildcards) -> list[str]:
        """Return the options of `evaluate` and `intervene` for the weights that they score."""
        if "@" not in wildcards.variant:
            return ["--run-dir", _run_folder(wildcards)]
        found, run = self._scored(wildcards), "{task}/{method}/{variant}/{seed}".format(**dict(wildcards.items()))
        return ["--run", run, "--scale", wildcards.scale, *(["--weights", found[1]] if found else ())]

    # analyse

    def _analysis(self, wildcards: Wildcards) -> dict[str, Any]:
        return self.catalogue.papers[wildcards.paper].analyses[wildcards.analysis]

    def _analysis_runs(self, wildcards: Wildcards) -> list[Run]:
        return select_display_runs(self._analysis(wildcards), self._asked(wildcards.paper, wildcards.scale))

    def list_analysis_runs(self, wildcards: Wildcards) -> list[str]:
        """Return the names of the runs, because --config of this invocation may differ from config.yaml."""
        return list(map(str, self._analysis_runs(wildcards)))

    def list_analysis_inputs(self, wildcards: Wildcards) -> list[str]:
        """Return the manifests and scores that an analysis reads."""
        entry, runs, root = self._analysis(wildcards), self._analysis_runs(wildcards), f"results/{wildcards.scale}"
        variants = find_intervened_variants([entry])
        tuned = {run.unseeded for run in runs if entry.get("searched")}
        searches = [found for found in tuned if self._search_seed(*found, wildcards.scale)]
        return [
            *(f"{root}/{manifest_file(run)}" for run in runs),
            *(f"{root}/{run_folder(run)}/eval/scores.csv" for run in runs if entry.get("scored")),
            *sorted(f"{root}/{search_folder(found)}/chosen.json" for found in searches),
            *(f"{root}/{intervention_folder(run)}/scores.csv" for run in runs if run.unseeded in variants),
            *sorted({f"{root}/{data_folder(run.task)}/dataset.json" for run in runs}),
            *locate_manifests(self.list_analysis_sources(wildcards)),
        ]

    def list_analysis_sources(self, wildcards: Wildcards) -> list[str]:
        """Return the downloaded files that an analysis reads."""
        entry, runs = self._analysis(wildcards), self._analysis_runs(wildcards)
        return locate_downloads(list_analysis_sources(self.catalogue, entry, runs, wildcards.scale))

    def list_analysis_checkpoints(self, wildcards: Wildcards) -> list[str]:
        """Return the weights of the runs of an analysis."""
        root = f"results/{wildcards.scale}"
        runs = [run for run in self._analysis_runs(wildcards) if not run.weights]
        return [f"{root}/{run_folder(run)}/checkpoint/model.safetensors" for run in runs]

    # table, figure, claims

    def _asked(self, paper: str, scale: str) -> dict[Run, list[str]]:
        return list_paper_runs(self.config, paper, scale)

    def _display(self, wildcards: Wildcards) -> dict[str, Any]:
        return self.catalogue.papers[wildcards.paper].displays[wildcards.display]

    def _display_runs(self, wildcards: Wildcards) -> list[Run]:
        return select_display_runs(self._display(wildcards), self._asked(wildcards.paper, wildcards.scale))

    def list_display_runs(self, wildcards: Wildcards) -> list[str]:
        """Return the names of the runs of a table or figure."""
        return list(map(str, self._display_runs(wildcards)))

    def _score_inputs(self, paper: str, displays: Iterable[dict[str, Any]], scale: str) -> list[str]:
        """Return the scores that displays show; of an analysis only its manifest."""
        displays = list(displays)
        runs = dict.fromkeys(run for entry in displays for run in select_display_runs(entry, self._asked(paper, scale)))
        analyses = dict.fromkeys(name for entry in displays for name in list_display_analyses(entry))
        variants = find_intervened_variants(displays)
        scores = [f"results/{scale}/{file}" for run in runs for file in score_files(run, variants)]
        return scores + [f"results/{scale}/{analysis_folder(paper, name)}/analysis.json" for name in analyses]

    def _display_inputs(self, wildcards: Wildcards) -> list[str]:
        return self._score_inputs(wildcards.paper, [self._display(wildcards)], wildcards.scale)

    def list_figure_inputs(self, wildcards: Wildcards) -> list[str]:
        """Return the scores, and the learning curves if the figure draws them."""
        runs = self._display_runs(wildcards) if self._display(wildcards).get("curves") else []
        curves = [f"results/{wildcards.scale}/{run_folder(run)}/training.csv" for run in runs]
        return self._display_inputs(wildcards) + curves

    def list_table_inputs(self, wildcards: Wildcards) -> list[str]:
        """Return the scores, and the data, because a note under the table compares them with the paper's data."""
        display, analyses = self._display(wildcards), self.catalogue.papers[wildcards.paper].analyses
        entries = [display, *(analyses[name] for name in list_display_analyses(display))]
        runs = self._asked(wildcards.paper, wildcards.scale)
        tasks = dict.fromkeys(run.task for entry in entries for run in select_display_runs(entry, runs))
        data = [f"results/{wildcards.scale}/{data_folder(task)}/dataset.json" for task in tasks]
        return self._display_inputs(wildcards) + data

    def get_display_group(self, wildcards: Wildcards) -> str:
        """Return the heading under which the report lists a table or figure."""
        return self._display(wildcards)["group"]

    def format_display_labels(self, wildcards: Wildcards) -> dict[str, str]:
        """Return a single label: with two, Snakemake's report loses the displays of a group that has two of them."""
        return {"display": "{source}: {title}".format(**self._display(wildcards))}

    def read_display_caption(self, wildcards: Wildcards) -> str:
        """Return the caption of a table or figure in the report."""
        return read_caption(self.catalogue, wildcards.paper, wildcards.display)

    def list_claims_inputs(self, wildcards: Wildcards) -> list[str]:
        """Return the scores that claims compare."""
        scale, files = wildcards.scale, []
        for name in self.config.papers:
            paper = self.catalogue.papers[name]
            displays = select_claimed_displays(paper, select_shown_displays(paper, self._asked(name, scale)))
            files += self._score_inputs(name, displays.values(), scale)
        return list(dict.fromkeys(files))

    def list_claims_runs(self, wildcards: Wildcards) -> list[str]:
        """Return the names of the runs of all papers."""
        return [str(run) for paper in self.config.papers for run in self._asked(paper, wildcards.scale)]

    # Resources

    def _find_device(self) -> str:
        """Guess where a training will run. A machine that submits to a cluster needs no GPU itself."""
        if self.config.device != "auto":
            return self.config.device
        return "cuda" if self.submits_jobs() or which("nvidia-smi") else "cpu"

    def get_run_resource(self, name: str) -> Callable[[Wildcards, int], Any]:
        """Return a function that gives a resource of a job on a run, or of its search. Seeds do not matter."""

        def resource(wildcards: Wildcards, attempt: int) -> Any:
            run = Run(wildcards.task, wildcards.method, wildcards.variant, seed=0)
            where = (self._device(), attempt, self.config.gpu_option)
            return getattr(resources.estimate_run_resources(run, wildcards.scale, *where), name)

        return _fast(resource)

    def get_fixed_resource(self, rule: str, name: str) -> Callable[[Wildcards, int], Any]:
        """Return a function that gives a resource of a rule whose jobs all request the same."""
        return lambda wildcards, attempt: getattr(resources.get_fixed_resources(rule, attempt), name)


def _fast(function: Callable[..., Any]) -> Callable[..., Any]:
    """Store the signature of a function: Snakemake asks `inspect` for it at each call, which would compute it again."""
    function.__signature__ = inspect.signature(function)
    return function


def _manifest(weights: tuple[str, str] | None) -> list[str]:
    return [weights[0]] if weights else []


def _checkpoint(weights: tuple[str, str] | None) -> list[str]:
    return [f"{weights[1]}/model.safetensors"] if weights and weights[0].endswith("run.json") else []


def _run_folder(wildcards: Wildcards) -> str:
    run = "{task}/{method}/{variant}/{seed}".format(**dict(wildcards.items()))
    return f"results/{wildcards.scale}/{run_folder(run)}"


def _state_folder(wildcards: Wildcards) -> str:
    return f"results/{wildcards.scale}/state/{wildcards.task}/{wildcards.method}/{wildcards.variant}"
