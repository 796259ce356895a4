"""Compute the inputs, parameters and resources of jobs on data, runs and analyses from wildcards.

Nothing here needs Snakemake, which calls the methods of `JobInputs` with the wildcards. Nor does it
need the catalogue.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from shutil import which
from typing import Any

from workflow_scripts.common.files import digest
from workflow_scripts.common.result_folders import (
    DOWNLOADS,
    RESULTS,
    DownloadedFile,
    HubModelFolder,
    RunFolder,
    ScaleFolder,
)
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.schema import Config
from workflow_scripts.data.sources.declared import load_repositories
from workflow_scripts.provenance.analysis_job_spec import AnalysisJobSpec
from workflow_scripts.provenance.run_job_spec import RunJobSpec
from workflow_scripts.provenance.spec_fingerprints import (
    Fingerprint,
    fingerprint_data,
    fingerprint_search,
    fingerprint_training,
    store_modules,
)
from workflow_scripts.tasks.run_spec import HubModel, ParentRun, RunSpec
from workflow_scripts.workflow.job_fingerprints import fingerprint_job
from workflow_scripts.workflow.job_times import find_job_minutes
from workflow_scripts.workflow.resources import GpuRequests, format_save_signal
from workflow_scripts.workflow.result_patterns import RUN_NAME
from workflow_scripts.workflow.snakemake_speed import store_signature
from workflow_scripts.workflow.spec_files import Specs
from workflow_scripts.workflow.wildcards import (
    Wildcards,
    WildcardValues,
    read_run_name,
    read_variant_key,
)

Names = tuple[tuple[str, str], ...]  # (wildcard, value) pairs
# Their fingerprint is the same for all seeds of a variant.
SCORING_RULES = ("evaluate", "intervene")


class JobInputs:
    """Inputs, parameters and resources of the jobs of one configuration, which are given `specs`.

    `submits_jobs` returns whether jobs go to a cluster. It is a function because Snakemake knows
    only after it has read the rules. `default_resources` are those of the user's profile.
    """

    def __init__(
        self,
        config: Config,
        specs: Specs,
        submits_jobs: Callable[[], bool] = lambda: False,
        default_resources: Mapping[str, Any] | None = None,
    ) -> None:
        self.config = config
        self.specs = specs
        self.submits_jobs = submits_jobs
        self.gpu_requests = GpuRequests(config, default_resources)
        # Those of this invocation: fingerprints by their short form, jobs as (rule, wildcards).
        self.fingerprints: dict[str, Fingerprint] = {}
        self.recorded_jobs: dict[tuple[str, Names], None] = {}
        # How often jobs ran out of memory in this invocation.
        self.out_of_memory: Counter[tuple[str, Names]] = Counter()
        # How often jobs reached their time limit in this invocation, and had saved nothing new.
        self.time_limits: Counter[tuple[str, Names]] = Counter()
        # What the first attempts of jobs on runs ask for, by rule and names without the seed.
        self.job_minutes: dict[tuple[str, Names], int] = {}
        self.find_device = cache(self._find_device)

    # Fingerprints

    def fingerprint(self, rule: str) -> Callable[[Wildcards], str]:
        """Return a function that fingerprints a job of `rule`.

        Snakemake reruns the job when the fingerprint changes.
        """
        return self.record_fingerprints(rule, partial(fingerprint_job, self.specs, rule))

    def record_fingerprints(
        self, rule: str, find_fingerprint: Callable[[dict[str, str]], Fingerprint | None]
    ) -> Callable[[Wildcards], str]:
        """Return a function that fingerprints a job of `rule`, and that records the job."""
        short_forms: dict[Names, str] = {}

        def fingerprint(wildcards: Wildcards) -> str:
            names = tuple(wildcards.items())
            self.recorded_jobs[rule, names] = None
            key = names
            if rule in SCORING_RULES:
                key = tuple((name, value) for name, value in names if name != "seed")
            if key not in short_forms:
                short_forms[key] = self._record(find_fingerprint(dict(names)))
            return short_forms[key]

        return store_signature(fingerprint)

    def _record(self, fingerprint: Fingerprint | None) -> str:
        """Record a fingerprint, and return its short form."""
        short_form = str(fingerprint)
        if fingerprint:
            self.fingerprints[short_form] = fingerprint
        return short_form

    def list_identifying_params(self, rule: str, wildcards: dict[str, str]) -> list[Any]:
        """Return the parameters by which Snakemake tells a result of a job from its other results.

        Raises UserError or KeyError if there is no such job.
        """
        values = WildcardValues(wildcards)
        params: list[Any] = [str(fingerprint_job(self.specs, rule, wildcards))]
        if rule == "train":
            params.append(self.locate_training_state(values))
        elif rule == "search":
            params.append(self.locate_search_state(values))
        elif rule == "analyse":
            params.append(self.list_analysed_runs(values))
        return params

    def store_fingerprints(self) -> None:
        """Store the modules of this invocation's code digests.

        A later `why` names the changed ones by them.
        """
        store_modules(self.fingerprints.values())

    # fetch_model, prepare, candidates

    def list_wheels(self, wildcards: Wildcards) -> list[str]:
        """Return the downloaded wheel that a model is read from; none for a model of the hub."""
        wheel = load_repositories()[wildcards.model].wheel
        if wheel is None:
            return []
        return _locate_sources([wheel])

    def list_wheel_manifests(self, wildcards: Wildcards) -> list[str]:
        """Return the manifest of `list_wheels`."""
        return _locate_manifests(self.list_wheels(wildcards))

    def list_data_sources(self, wildcards: Wildcards) -> list[str]:
        """Return the downloaded files that the data of a task are made of."""
        return _locate_sources(self.specs.get_data(wildcards.task, wildcards.scale).sources)

    def list_data_manifests(self, wildcards: Wildcards) -> list[str]:
        """Return the manifests of `list_data_sources`."""
        return _locate_manifests(self.list_data_sources(wildcards))

    def list_candidate_sources(self, wildcards: Wildcards) -> list[str]:
        """Return the downloaded files that the replacement words of a task are made of."""
        return _locate_sources(self.specs.get_candidates(wildcards.task, wildcards.scale).sources)

    def list_candidate_manifests(self, wildcards: Wildcards) -> list[str]:
        """Return the manifests of `list_candidate_sources`."""
        return _locate_manifests(self.list_candidate_sources(wildcards))

    # search, train

    def _get_job_spec(self, wildcards: Wildcards) -> RunJobSpec:
        """Return what the job on a run, or the search of a variant, is given."""
        names = dict(wildcards.items())
        if "seed" not in names:
            return self.specs.get_search(read_variant_key(names), wildcards.scale)
        return self.specs.get_run(read_run_name(names), wildcards.scale)

    def find_init_manifest(self, wildcards: Wildcards) -> list[str]:
        """Return the manifest with the sha256 of the initial weights; none if they are random."""
        origin = self._get_job_spec(wildcards).spec.origin
        if isinstance(origin, ParentRun):
            return [str(_scale(wildcards).run(origin.run).manifest)]
        if isinstance(origin, HubModel):
            return [str(_hub_folder(origin).manifest)]
        return []

    def find_init_checkpoint(self, wildcards: Wildcards) -> list[str]:
        """Return the initial weights, if a run of the workflow made them."""
        origin = self._get_job_spec(wildcards).spec.origin
        if isinstance(origin, ParentRun):
            return [str(_scale(wildcards).run(origin.run).weights)]
        return []

    def _find_init_folder(self, wildcards: Wildcards) -> Path | None:
        """Return the folder of the initial weights; None if they are random."""
        origin = self._get_job_spec(wildcards).spec.origin
        if isinstance(origin, ParentRun):
            return _scale(wildcards).run(origin.run).checkpoint
        if isinstance(origin, HubModel):
            return _hub_folder(origin).path
        return None

    def format_init_option(self, wildcards: Wildcards) -> str:
        """Return the option of `train` and `search` for initial weights."""
        folder = self._find_init_folder(wildcards)
        if folder is None:
            return ""
        return f"--init={folder}"

    def find_search_result(self, wildcards: Wildcards) -> list[str]:
        """Return the file with a run's learning rate and batch size, if a search chooses them."""
        spec = self._get_job_spec(wildcards).spec
        if not isinstance(spec, RunSpec) or not spec.search:
            return []
        return [str(_scale(wildcards).search(spec.variant_key).chosen)]

    def format_search_option(self, wildcards: Wildcards) -> str:
        """Return the option of `train` for the result of a search."""
        return " ".join(f"--search={file}" for file in self.find_search_result(wildcards))

    def locate_training_state(self, wildcards: Wildcards) -> str:
        """Return the folder from which a killed training resumes.

        It depends on the spec, the data and their code, so that no run resumes from the state of
        another. It is no output, because Snakemake deletes the outputs of a failed job.
        """
        spec = self._get_job_spec(wildcards).training_spec
        fingerprints = [fingerprint_training(spec), _fingerprint_data_of(spec)]
        if spec.search:
            searched = self.specs.get_search(spec.variant_key, wildcards.scale).training_spec
            fingerprints.append(fingerprint_search(searched))
        digest_of_inputs = _join_digests(fingerprints)
        return str(_scale(wildcards).training_state(spec.run, digest_of_inputs))

    def locate_search_state(self, wildcards: Wildcards) -> str:
        """Return the folder from which a killed search resumes."""
        spec = self._get_job_spec(wildcards).training_spec
        fingerprints = [fingerprint_search(spec), _fingerprint_data_of(spec)]
        digest_of_inputs = _join_digests(fingerprints)
        return str(_scale(wildcards).search_state(spec.variant_key, digest_of_inputs))

    # evaluate, intervene

    def find_scored_manifest(self, wildcards: Wildcards) -> list[str]:
        """Return the manifest with the sha256 of the weights that a job scores."""
        if _read_run(wildcards).weights:
            return self.find_init_manifest(wildcards)
        return [str(_run_folder(wildcards).manifest)]

    def find_scored_checkpoint(self, wildcards: Wildcards) -> list[str]:
        """Return the weights that a job scores, if a run of the workflow made them."""
        if _read_run(wildcards).weights:
            return self.find_init_checkpoint(wildcards)
        return [str(_run_folder(wildcards).weights)]

    def list_scored_options(self, wildcards: Wildcards) -> list[str]:
        """Return the options of `evaluate` and `intervene` for the weights that they score."""
        if not _read_run(wildcards).weights:
            return ["--run-dir", str(_run_folder(wildcards).path)]
        folder = self._find_init_folder(wildcards)
        if folder is None:
            return []
        return ["--weights", str(folder)]

    # analyse

    def _get_analysis(self, wildcards: Wildcards) -> AnalysisJobSpec:
        """Return what the job of an analysis is given."""
        return self.specs.get_analysis(wildcards.paper, wildcards.analysis, wildcards.scale)

    def list_analysed_runs(self, wildcards: Wildcards) -> list[str]:
        """Return the names of the runs. They depend on --config of this invocation, too."""
        return [str(analysed.run) for analysed in self._get_analysis(wildcards).runs]

    def list_analysis_inputs(self, wildcards: Wildcards) -> list[str]:
        """Return the manifests and scores that an analysis reads."""
        job_spec = self._get_analysis(wildcards)
        results = _scale(wildcards)
        runs = [analysed.run for analysed in job_spec.runs]
        inputs = [results.run(run).first_manifest for run in runs]
        if job_spec.entry.scored:
            inputs += [results.run(run).evaluation.scores for run in runs]
        for run in runs:
            if run.variant_key in job_spec.entry.intervened_variants:
                inputs.append(results.run(run).interventions.scores)
        tasks = {run.task for run in runs}
        inputs += sorted(results.data(task).manifest for task in tasks)
        files = [str(file) for file in inputs]
        return files + _locate_manifests(self.list_analysis_sources(wildcards))

    def list_analysis_sources(self, wildcards: Wildcards) -> list[str]:
        """Return the downloaded files that an analysis reads."""
        return _locate_sources(self._get_analysis(wildcards).sources)

    def list_analysis_checkpoints(self, wildcards: Wildcards) -> list[str]:
        """Return the weights of the runs of an analysis."""
        results = _scale(wildcards)
        runs = [analysed.run for analysed in self._get_analysis(wildcards).runs]
        return [str(results.run(run).weights) for run in runs if not run.weights]

    # Resources

    def _find_device(self) -> str:
        """Guess where a training will run.

        A machine that submits to a cluster needs no GPU itself.
        """
        if self.config.device != "auto":
            return self.config.device
        if self.submits_jobs() or which("nvidia-smi"):
            return "cuda"
        return "cpu"

    def record_out_of_memory(self, rule: str, wildcards: Wildcards) -> None:
        """Record that a job ran out of memory: its next attempt requests twice as much."""
        self.out_of_memory[rule, tuple(wildcards.items())] += 1

    def estimate_memory(
        self, rule: str, megabytes: int | None = None
    ) -> Callable[[Wildcards], int]:
        """Return a function that gives the memory of a job of `rule` in MB.

        At first that is `megabytes`, or what the scale gives to the run; after each time that the
        job ran out of memory, twice as much. Snakemake calls the function again for each attempt.
        """

        def estimate(wildcards: Wildcards) -> int:
            memory = megabytes
            if memory is None:
                resources = self._get_job_spec(wildcards).resources
                assert resources, "resolved from the catalogue"
                memory = resources.memory
            return memory * 2 ** self.out_of_memory[rule, tuple(wildcards.items())]

        return store_signature(estimate)

    def record_time_limit(self, rule: str, wildcards: Wildcards) -> None:
        """Record that a job reached its time limit without a new saved state.

        Its next attempt requests twice the time.
        """
        self.time_limits[rule, tuple(wildcards.items())] += 1

    def estimate_minutes(self, rule: str, minutes: int | None = None) -> Callable[[Wildcards], int]:
        """Return a function that gives the time of a job of `rule` in minutes.

        At first that is `minutes`, or what a job on the run is estimated to need; after each time
        limit that `record_time_limit` has recorded, twice as much. Snakemake calls the function
        again for each attempt.
        """

        def estimate(wildcards: Wildcards) -> int:
            first = minutes
            if first is None:
                first = self._estimate_run_minutes(rule, wildcards)
            return first * 2 ** self.time_limits[rule, tuple(wildcards.items())]

        return store_signature(estimate)

    def _estimate_run_minutes(self, rule: str, wildcards: Wildcards) -> int:
        """Return the minutes that the first attempt of a job on a run, or of a search, asks for."""
        resources = self._get_job_spec(wildcards).resources
        assert resources, "resolved from the catalogue"
        if not self.submits_jobs():
            return 60 * resources.hours
        names = tuple(pair for pair in wildcards.items() if pair[0] != "seed")
        if (rule, names) not in self.job_minutes:  # seeds need the same
            device = self.find_device()
            seconds = self.specs.estimate_seconds(rule, dict(wildcards.items()), device)
            self.job_minutes[rule, names] = find_job_minutes(rule, resources, seconds)
        return self.job_minutes[rule, names]

    def get_threads(self, wildcards: Wildcards) -> int:
        """Return the cores of a job on a run, or of a search."""
        return self._get_job_spec(wildcards).spec.torch_threads

    def list_gpu_resources(
        self, saves_state: bool = False
    ) -> dict[str, Callable[[Wildcards], Any]]:
        """Return the functions that give the resources by which jobs on runs ask for a GPU.

        saves_state: whether SLURM is to tell the jobs early to save their state.
        """
        functions = {}
        for name in self.gpu_requests.names:
            functions[name] = store_signature(partial(self._get_gpu_resource, name, saves_state))
        return functions

    def _get_gpu_resource(self, name: str, saves_state: bool, wildcards: Wildcards) -> Any:
        """Return one of the resources by which a job on a run asks for a GPU."""
        resources = self._get_job_spec(wildcards).resources
        assert resources, "resolved from the catalogue"
        device = self.find_device()
        asked = self.gpu_requests.get_resources(resources, device, self.submits_jobs())[name]
        if name == "slurm_extra" and saves_state:
            return f"{format_save_signal(resources)} {asked}".strip()
        return asked


def _fingerprint_data_of(spec: RunSpec) -> Fingerprint:
    """Fingerprint the preparation of the data of a training."""
    assert spec.data, "resolved from the catalogue"
    return fingerprint_data(spec.data)


def _join_digests(fingerprints: list[Fingerprint]) -> str:
    return digest([str(fingerprint) for fingerprint in fingerprints])


def _locate_sources(names: Iterable[str]) -> list[str]:
    """Return the downloads of files of sources.yaml."""
    return [str(DOWNLOADS.source(name).path) for name in names]


def _locate_manifests(files: Iterable[str]) -> list[str]:
    """Return the manifest of each download."""
    return [str(DownloadedFile(Path(file)).manifest) for file in files]


def _read_run(wildcards: Wildcards) -> Run:
    return read_run_name(dict(wildcards.items()))


def _hub_folder(model: HubModel) -> HubModelFolder:
    return DOWNLOADS.model(model.hub)


def _scale(wildcards: Wildcards) -> ScaleFolder:
    return _scale_folder(wildcards.scale)


@cache
def _scale_folder(scale: str) -> ScaleFolder:
    """Return the results of a scale, for which every job asks several times."""
    return RESULTS.scale(scale)


def _run_folder(wildcards: Wildcards) -> RunFolder:
    return _scale(wildcards).run(RUN_NAME.format(**dict(wildcards.items())))
