"""Compute the inputs, parameters and resources of a job on data or a run from its wildcards.

Nothing here needs Snakemake, which calls the methods of `Workflow` with the wildcards.
"""

from collections.abc import Callable
from functools import cache
from shutil import which
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import digest
from workflow_scripts.config.catalogue import Catalogue, Run, parse_run
from workflow_scripts.config.paths import DOWNLOADS, run_folder, search_folder
from workflow_scripts.config.schema import Config
from workflow_scripts.config.specs import (
    find_parent_run,
    find_search_run,
    resolve_candidates,
    resolve_data,
    resolve_run,
)
from workflow_scripts.data.sources.declared import load_repositories
from workflow_scripts.provenance.fingerprints import fingerprint_job
from workflow_scripts.provenance.spec_fingerprints import Fingerprint, store_modules
from workflow_scripts.tasks.run_spec import HubModel
from workflow_scripts.workflow import resources
from workflow_scripts.workflow.planning import Job, write_spec_files
from workflow_scripts.workflow.snakemake_speed import store_signature
from workflow_scripts.workflow.targets import locate_downloads, locate_manifests
from workflow_scripts.workflow.wildcards import Wildcards


class Workflow:
    """The jobs of one configuration.

    `submits_jobs` returns whether jobs go to a cluster. It is a function because Snakemake knows only after it has
    read the rules.
    """

    def __init__(
        self, config: Config, catalogue: Catalogue, submits_jobs: Callable[[], bool] = lambda: False
    ) -> None:
        self.config, self.catalogue, self.submits_jobs = config, catalogue, submits_jobs
        # of this invocation's jobs, by their short form
        self.fingerprints: dict[str, Fingerprint] = {}
        self.jobs: dict[Job, None] = {}  # of this invocation
        # Thousands of jobs share the answers of these.
        self._fingerprint, self._init = cache(self._find_fingerprint), cache(self._find_init)
        self.search_seed, self._device = cache(self._find_search_seed), cache(self._find_device)

    # Fingerprints

    def fingerprint(self, rule: str, **shared: str) -> Callable[[Wildcards], str]:
        """Return a function that fingerprints a job of `rule`. Snakemake reruns the job when it changes.

        `shared` replaces wildcards that do not change it, so that jobs with the same fingerprint compute it once.
        """

        def fingerprint(wildcards: Wildcards) -> str:
            names = dict(wildcards.items())
            self.jobs[rule, tuple(names.items())] = None
            return self._fingerprint(rule, **(names | shared))

        return store_signature(fingerprint)

    def _find_fingerprint(self, rule: str, **wildcards: str) -> str:
        found = fingerprint_job(self.catalogue, self.config, rule, wildcards)
        if found:
            self.fingerprints[str(found)] = found
        return str(found)

    def store_fingerprints(self) -> None:
        """Store the modules of this invocation's code digests, so that a later `why` can name the changed ones."""
        store_modules(self.fingerprints.values())

    def write_spec_files(self) -> None:
        """Write what the jobs of this invocation are given. The jobs on a cluster take the files that are there."""
        write_spec_files(self.catalogue, self.config, self.jobs)

    # fetch, prepare, candidates

    def list_data_sources(self, wildcards: Wildcards) -> list[str]:
        """Return the downloaded files that the data of a task are made of."""
        return locate_downloads(
            resolve_data(self.catalogue, wildcards.task, wildcards.scale).sources
        )

    def list_data_manifests(self, wildcards: Wildcards) -> list[str]:
        """Return the manifests of `list_data_sources`."""
        return locate_manifests(self.list_data_sources(wildcards))

    def list_candidate_sources(self, wildcards: Wildcards) -> list[str]:
        """Return the downloaded files that the replacement words of a task are made of."""
        return locate_downloads(
            resolve_candidates(self.catalogue, wildcards.task, wildcards.scale).sources
        )

    def list_candidate_manifests(self, wildcards: Wildcards) -> list[str]:
        """Return the manifests of `list_candidate_sources`."""
        return locate_manifests(self.list_candidate_sources(wildcards))

    # fetch_model

    def list_wheels(self, wildcards: Wildcards) -> list[str]:
        """Return the downloaded wheel that a model is read from; none for a model of the hub."""
        wheel = load_repositories()[wildcards.model].wheel
        return locate_downloads([wheel] if wheel else [])

    def list_wheel_manifests(self, wildcards: Wildcards) -> list[str]:
        """Return the manifest of `list_wheels`."""
        return locate_manifests(self.list_wheels(wildcards))

    # search, train

    def _find_search_seed(self, task: str, method: str, variant: str, scale: str) -> str | None:
        """Return the seed of the search before the trainings of a variant; None if there is no search."""
        # raises if there is no such variant
        run = parse_run(self.catalogue, f"{task}/{method}/{variant}/seed-0")
        found = find_search_run(self.catalogue, run, scale, self.config.precision)
        return f"seed-{found.seed}" if found else None

    def _find_init(
        self, task: str, method: str, variant: str, seed: str, scale: str
    ) -> tuple[str, str] | None:
        """Return (manifest, folder) of the initial weights of a run; None if they are random."""
        # raises if there is no such variant
        run = parse_run(self.catalogue, f"{task}/{method}/{variant}/{seed}")
        if before := find_parent_run(self.catalogue, run, scale, self.config.precision):
            folder = f"results/{scale}/{run_folder(before)}"
            return f"{folder}/run.json", f"{folder}/checkpoint"
        origin = resolve_run(self.catalogue, run, scale, self.config.precision).origin
        if not isinstance(origin, HubModel):
            return None
        folder = f"{DOWNLOADS}/models/{origin.hub}"
        return f"{folder}/model.json", folder

    def _init_of(self, wildcards: Wildcards) -> tuple[str, str] | None:
        """Return (manifest, folder) for a search or a training. A search has its seed from its settings."""
        variant = (wildcards.task, wildcards.method, wildcards.variant)
        seed = dict(wildcards.items()).get("seed") or self.search_seed(*variant, wildcards.scale)
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
        found = self.search_seed(*variant, wildcards.scale)
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
        jobs = [
            self._fingerprint("search", **dict(wildcards.items())),
            self._data_fingerprint(wildcards),
        ]
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
        weights = self._scored(wildcards)
        return ["--weights", weights[1]] if weights else []

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
            return resources.estimate_run_resources(run, wildcards.scale, *where)[name]

        return store_signature(resource)


def _manifest(weights: tuple[str, str] | None) -> list[str]:
    return [weights[0]] if weights else []


def _checkpoint(weights: tuple[str, str] | None) -> list[str]:
    return (
        [f"{weights[1]}/model.safetensors"] if weights and weights[0].endswith("run.json") else []
    )


def _run_folder(wildcards: Wildcards) -> str:
    run = "{task}/{method}/{variant}/{seed}".format(**dict(wildcards.items()))
    return f"results/{wildcards.scale}/{run_folder(run)}"


def _state_folder(wildcards: Wildcards) -> str:
    return (
        f"results/{wildcards.scale}/state/{wildcards.task}/{wildcards.method}/{wildcards.variant}"
    )
