"""Compute one analysis of a paper from its trained runs: scores.csv, and tables for its figures."""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import (
    check_replaceable,
    hash_file,
    hash_files,
    read_mapping,
    write_atomically,
    write_json,
)
from workflow_scripts.common.plug_ins import ANALYSES, import_function, parse_options
from workflow_scripts.common.result_folders import DOWNLOADS, AnalysisFolder, ScaleFolder
from workflow_scripts.data.sources.declared import verify_downloads
from workflow_scripts.evaluation.protocol import find_worst_protocol
from workflow_scripts.evaluation.published_numbers import parse_published
from workflow_scripts.evaluation.scores import write_scores
from workflow_scripts.provenance.analysis_job_spec import (
    AnalysedRun,
    AnalysisJobSpec,
    read_analysis_job_spec,
)
from workflow_scripts.provenance.record import add_output_digests, make_record
from workflow_scripts.provenance.spec_fingerprints import fingerprint_analysis
from workflow_scripts.tasks.checkpoints import check_checkpoint, read_run

if TYPE_CHECKING:
    from workflow_scripts.analyses.result import AnalysisResult
    from workflow_scripts.analyses.trained_runs import TrainedRun


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    names = parser.add_mutually_exclusive_group(required=True)
    names.add_argument(
        "--spec", type=Path, metavar="FILE", help="what ./reproduce writes to results/<scale>/specs"
    )
    names.add_argument("--paper", help="folder of papers/; with --analysis and --scale")
    parser.add_argument(
        "--analysis", help="with --paper: name under `analyses` in its displays.yaml"
    )
    parser.add_argument("--scale", help="with --paper: scale of the catalogue")
    runs = "with --paper: instead of the runs that config.yaml asks for"
    parser.add_argument("--runs", nargs="*", metavar="ID", help=runs)
    parser.add_argument(
        "--results", type=Path, required=True, metavar="DIR", help="results/<scale>"
    )
    parser.add_argument(
        "--downloads",
        type=Path,
        default=DOWNLOADS.path,
        help="where fetch put the sources",
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="gets scores.csv and further tables"
    )
    parser.set_defaults(job_spec=None)


def main(args: argparse.Namespace) -> None:
    """Compute the analysis on its requested runs and write `--out`."""
    job_spec: AnalysisJobSpec = args.job_spec or read_analysis_job_spec(args.spec)
    entry = job_spec.entry
    # Snakemake deletes its outputs before a job; the record is none of them.
    folder = AnalysisFolder(args.out)
    check_replaceable(folder.path, folder.names, required=folder.record.name)
    analyse = import_function(entry.module, "analyse", ANALYSES)
    place = f"analysis {job_spec.analysis} of {job_spec.paper}"
    options = parse_options(entry.module, ANALYSES, entry.options, place, ("options",))

    results = ScaleFolder(args.results)
    origins = [read_origin(analysed, results) for analysed in job_spec.runs]
    runs = [make_trained_run(origin, results) for origin in origins]
    sources, source_digests = verify_downloads(job_spec.sources, args.downloads)
    if job_spec.published is not None:
        rows = ((f"published.csv of {entry.published}", row) for row in job_spec.published)
        result = analyse(parse_published(rows), options)
    elif entry.sources:
        result = analyse(runs, options, sources)
    else:
        result = analyse(runs, options)
    write_analysis(folder, job_spec, origins, source_digests, result)


@dataclass(frozen=True)
class RunOrigin:
    """A run that an analysis reads, and what made it."""

    run: AnalysedRun
    model: str
    protocol: str
    data_digest: str
    weights_sha256: str


def write_analysis(
    target: AnalysisFolder,
    job_spec: AnalysisJobSpec,
    origins: list[RunOrigin],
    source_digests: dict[str, str],
    result: "AnalysisResult",
) -> None:
    """Write the folder of an analysis: scores, further tables, manifest and record.

    source_digests: the sha256 of each download that the analysis has read.
    """
    with write_atomically(target.path) as out:
        folder = AnalysisFolder(out)
        out.mkdir()
        write_scores(folder.scores, result.scores)
        for name in result.files:
            result.write_table(name, folder.table(name))
        manifest = describe_analysis(job_spec, origins, result) | {"files": hash_files(out)}
        write_json(folder.manifest, manifest)
        write_json(folder.record, make_analysis_record(job_spec, origins, source_digests))
        add_output_digests(folder.record, [folder.manifest])


def describe_analysis(
    job_spec: AnalysisJobSpec, origins: list[RunOrigin], result: "AnalysisResult"
) -> dict[str, Any]:
    """Return the content of analysis.json, without the sha256 of the files."""
    entry = job_spec.entry
    protocol = None
    if origins:
        protocol = find_worst_protocol(*(origin.protocol for origin in origins))
    return {
        "paper": job_spec.paper,
        "analysis": job_spec.analysis,
        "scale": job_spec.scale,
        "module": entry.module,
        "options": entry.options,
        "runs": [str(analysed.run) for analysed in job_spec.runs],
        "protocol": protocol,
        "notes": result.notes,
        "checkpoints_sha256": {str(origin.run.run): origin.weights_sha256 for origin in origins},
    }


def make_analysis_record(
    job_spec: AnalysisJobSpec, origins: list[RunOrigin], source_digests: dict[str, str]
) -> dict[str, Any]:
    """Return the content of record.json."""
    import torch

    from workflow_scripts.training.machine import describe_device

    models = [origin.model for origin in origins]
    fingerprint = fingerprint_analysis(job_spec.entry, models, job_spec.published_numbers)
    digests = dict(source_digests)
    for origin in origins:
        digests[origin.run.task] = origin.data_digest
    device = describe_device(torch.device("cpu"))
    return make_record(fingerprint, digests, precision="fp32", computed_on=device)


def make_trained_run(origin: RunOrigin, results: ScaleFolder) -> "TrainedRun":
    """Return a run as an analysis reads it."""
    from workflow_scripts.analyses.trained_runs import TrainedRun

    run = origin.run
    return TrainedRun(
        task=run.task,
        method=run.method,
        variant=run.variant,
        seed=run.seed,
        protocol=origin.protocol,
        folder=results.run(run.run).path,
        data=results.data(run.task).path,
        series=run.series,
        readout=run.readout,
    )


def read_origin(run: AnalysedRun, results: ScaleFolder) -> RunOrigin:
    """Read what made a run. Raises UserError if a file of a trained run was changed.

    Of given weights the models are not read, only their scores.
    """
    folder = results.run(run.run)
    if run.run.weights:
        return _read_origin_of_given_weights(run, folder.evaluation.manifest)
    trained = read_run(folder.path)
    check_checkpoint(folder.path, trained)
    spec = trained.spec
    weights = trained.weights_sha256
    if run.readout in spec.kept_checkpoints:
        weights = hash_file(folder.weights_at(run.readout))
    return RunOrigin(run, spec.model.name, spec.protocol, trained.data_digest, weights)


def _read_origin_of_given_weights(run: AnalysedRun, file: Path) -> RunOrigin:
    """Read what made a run from the manifest of its evaluation."""
    evaluation = read_mapping(file, "data_digest", "checkpoint_sha256", "spec")
    try:
        scored = evaluation["spec"]["scored"]
        model = scored["model"]["name"]
        protocol = scored["protocol"]
    except (KeyError, TypeError) as error:
        raise UserError(
            f"{file} is not what evaluate writes of given weights; score the run again"
        ) from error
    return RunOrigin(
        run, model, protocol, evaluation["data_digest"], evaluation["checkpoint_sha256"]
    )
