"""Compute one analysis of a paper from its trained runs: scores.csv, and tables for its figures."""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import (
    check_replaceable,
    hash_files,
    read_mapping,
    write_atomically,
    write_json,
)
from workflow_scripts.common.plug_ins import ANALYSES, import_function, parse_options
from workflow_scripts.config.paths import data_folder, run_folder
from workflow_scripts.data.sources.declared import verify_downloads
from workflow_scripts.evaluation.protocol import find_worst_protocol
from workflow_scripts.provenance.analysis_job_spec import (
    AnalysedRun,
    AnalysisJobSpec,
    read_analysis_job_spec,
)
from workflow_scripts.provenance.record import make_record
from workflow_scripts.provenance.spec_fingerprints import fingerprint_analysis
from workflow_scripts.tasks.checkpoints import check_checkpoint, read_run

if TYPE_CHECKING:
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
        default=Path("results/downloads"),
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
    # Snakemake deletes its outputs before a job; record.json is none of them.
    check_replaceable(args.out, ("*.csv", "analysis.json", "record.json"), required="record.json")
    analyse = import_function(entry.module, "analyse", ANALYSES)
    place = f"analysis {job_spec.analysis} of {job_spec.paper}"
    options = parse_options(entry.module, ANALYSES, entry.options, place, ("options",))

    # torch takes more than a second to import, so wrong names are reported first.
    import torch

    from workflow_scripts.evaluation.published_numbers import parse_published
    from workflow_scripts.evaluation.scores import write_scores
    from workflow_scripts.training.machine import describe_device

    trained_runs: list[TrainedRun] = []
    models: list[str] = []
    data_digests: dict[str, str] = {}
    weights_sha256: dict[str, str] = {}
    for analysed in job_spec.runs:
        origin = read_origin(analysed, args.results / run_folder(analysed.run))
        models.append(origin.model)
        data_digests[analysed.task] = origin.data_digest
        weights_sha256[str(analysed.run)] = origin.weights_sha256
        trained_runs.append(make_trained_run(analysed, origin.protocol, args.results))
    sources, source_digests = verify_downloads(job_spec.sources, args.downloads)
    if job_spec.published is not None:
        rows = ((f"published.csv of {entry.published}", row) for row in job_spec.published)
        analysis = analyse(parse_published(rows), options)
    elif entry.sources:
        analysis = analyse(trained_runs, options, sources)
    else:
        analysis = analyse(trained_runs, options)
    protocol = None
    if trained_runs:
        protocol = find_worst_protocol(*(run.protocol for run in trained_runs))
    fingerprint = fingerprint_analysis(entry, models, job_spec.published_numbers)
    digests = source_digests | data_digests
    with write_atomically(args.out) as out:
        out.mkdir()
        write_scores(out / "scores.csv", analysis.scores)
        for name, table in analysis.files.items():
            table.to_csv(out / f"{name}.csv", index=False, float_format="%.6g")
        content = {
            "paper": job_spec.paper,
            "analysis": job_spec.analysis,
            "scale": job_spec.scale,
            "module": entry.module,
            "options": entry.options,
            "runs": [str(analysed.run) for analysed in job_spec.runs],
            "protocol": protocol,
            "notes": analysis.notes,
            "files": hash_files(out),
            "checkpoints_sha256": weights_sha256,
        }
        write_json(out / "analysis.json", content)
        device = describe_device(torch.device("cpu"))
        record = make_record(fingerprint, digests, precision="fp32", computed_on=device)
        write_json(out / "record.json", record)


@dataclass(frozen=True)
class RunOrigin:
    """What made a run that an analysis reads."""

    model: str
    protocol: str
    data_digest: str
    weights_sha256: str


def make_trained_run(analysed: AnalysedRun, protocol: str, results: Path) -> "TrainedRun":
    """Return a run as an analysis reads it. `results`: folder of its scale."""
    from workflow_scripts.analyses.trained_runs import TrainedRun

    return TrainedRun(
        task=analysed.task,
        method=analysed.method,
        variant=analysed.variant,
        seed=analysed.seed,
        protocol=protocol,
        folder=results / run_folder(analysed.run),
        data=results / data_folder(analysed.task),
        series=analysed.series,
        readout=analysed.readout,
    )


def read_origin(analysed: AnalysedRun, folder: Path) -> RunOrigin:
    """Read what made a run. Raises UserError if a file of a trained run was changed.

    Of given weights the models are not read, only their scores.
    """
    if analysed.run.weights:
        file = folder / "eval/evaluation.json"
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
            model, protocol, evaluation["data_digest"], evaluation["checkpoint_sha256"]
        )
    trained = read_run(folder)
    check_checkpoint(folder, trained)
    spec = trained.spec
    return RunOrigin(spec.model.name, spec.protocol, trained.data_digest, trained.weights_sha256)
