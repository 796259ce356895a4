"""Fingerprint the jobs of the workflow from what they are given."""

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_mapping
from workflow_scripts.common.result_folders import DOWNLOADS
from workflow_scripts.data.sources.declared import Source, load_repositories, load_sources
from workflow_scripts.provenance.code import PACKAGE
from workflow_scripts.provenance.run_job_spec import RunJobSpec
from workflow_scripts.provenance.spec_fingerprints import (
    Fingerprint,
    fingerprint_analysis,
    fingerprint_candidates,
    fingerprint_data,
    fingerprint_evaluation,
    fingerprint_intervention,
    fingerprint_search,
    fingerprint_training,
)
from workflow_scripts.tasks.prompt.settings import get_match_rule
from workflow_scripts.workflow.expected_downloads import list_expected_sha256
from workflow_scripts.workflow.spec_files import Specs
from workflow_scripts.workflow.wildcards import read_run_name, read_variant_key


def fingerprint_job(specs: Specs, rule: str, wildcards: dict[str, str]) -> Fingerprint | None:
    """Fingerprint the job of `rule` with these wildcards.

    None for reports, which read the catalogue, and for rules without a fingerprint.
    """
    scale = wildcards.get("scale", "")
    if rule == "fetch":
        return _fingerprint_download(load_sources()[wildcards["source"]])
    if rule == "fetch_model":
        return _fingerprint_model(wildcards["model"])
    if rule in ("prepare", "prepare_large"):
        return fingerprint_data(specs.get_data(wildcards["task"], scale))
    if rule == "candidates":
        return fingerprint_candidates(specs.get_candidates(wildcards["task"], scale))
    if rule == "search":
        job_spec = specs.get_search(read_variant_key(wildcards), scale)
        return fingerprint_search(job_spec.training_spec)
    if rule in ("train", "evaluate", "intervene"):
        job_spec = specs.get_run(read_run_name(wildcards), scale)
        if rule == "train":
            return fingerprint_training(job_spec.training_spec)
        if rule == "evaluate":
            return _fingerprint_evaluation(job_spec)
        return _fingerprint_intervention(job_spec)
    if rule == "analyse":
        analysis = specs.get_analysis(wildcards["paper"], wildcards["analysis"], scale)
        models = [run.model for run in analysis.runs]
        return fingerprint_analysis(analysis.entry, models, analysis.published_numbers)
    return None


def _fingerprint_download(source: Source) -> Fingerprint:
    """Fingerprint the download of a file.

    Of a file without a pinned sha256 that of trusted.csv counts only where the file here has
    another one. It is none of the fingerprint otherwise: the first download writes it.
    """
    sha256 = source.sha256
    if sha256 is None:
        here = _read_downloaded_sha256(source)
        expected = list_expected_sha256(source) if here else []
        if expected and here not in expected:
            sha256 = expected[0]
    return Fingerprint({"sha256": sha256}, ())


def _read_downloaded_sha256(source: Source) -> str | None:
    """Return the sha256 in the manifest of a download; None if there is none to be read."""
    try:
        return read_mapping(DOWNLOADS.source(source.name).manifest).get("sha256")
    except UserError:
        return None


def _fingerprint_model(model_name: str) -> Fingerprint:
    """Fingerprint the download of a model, and its conversion where that is needed."""
    model = load_repositories()[model_name]
    content = {"revision": model.revision}
    content |= {name: file.sha256 for name, file in model.files.items()}
    is_converted = any(name.endswith(".gguf") for name in model.files)
    if is_converted:
        return Fingerprint(content, (f"{PACKAGE}.models.causal_lm.gguf_model",))
    return Fingerprint(content, ())


def _fingerprint_evaluation(job_spec: RunJobSpec) -> Fingerprint:
    """Fingerprint the evaluation of a run, the same for all seeds of a variant."""
    if job_spec.evaluation is None:
        raise UserError(f"{job_spec.spec.run}: how to score it is unknown; plan the run again")
    return fingerprint_evaluation(job_spec.evaluation, job_spec.shared_spec or job_spec.spec)


def _fingerprint_intervention(job_spec: RunJobSpec) -> Fingerprint:
    """Fingerprint the interventions on a run, the same for all seeds of a variant."""
    if job_spec.intervention is None:
        missing = "its settings give no interventions"
        raise UserError(f"{job_spec.spec.run}: {missing}; add them under `intervention`")
    match = get_match_rule(job_spec.evaluation)
    spec = job_spec.shared_spec or job_spec.spec
    return fingerprint_intervention(job_spec.intervention, match, spec)
