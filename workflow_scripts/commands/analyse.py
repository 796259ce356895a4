"""Compute one analysis of a paper from its trained runs: scores.csv, and tables for its figures."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from workflow_scripts.common.files import check_replaceable, hash_files, read_mapping, write_atomically, write_json
from workflow_scripts.common.plug_ins import import_function
from workflow_scripts.config.catalogue import Catalogue, Run
from workflow_scripts.config.displays import (
    add_run_arguments,
    find_entry,
    list_analysis_sources,
    select_display_runs,
    select_paper_runs,
)
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.paths import data_folder, run_folder
from workflow_scripts.config.specs import resolve_run
from workflow_scripts.data.sources.declared import verify_downloads
from workflow_scripts.evaluation.protocol import find_worst_protocol
from workflow_scripts.provenance.fingerprints import fingerprint_analysis, select_published_rows
from workflow_scripts.provenance.record import make_record
from workflow_scripts.tasks.checkpoints import check_checkpoint, read_run
from workflow_scripts.tasks.run_spec import ModelSpec


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_run_arguments(parser)
    parser.add_argument("--analysis", required=True, help="name under `analyses` in the paper's displays.yaml")
    parser.add_argument("--downloads", type=Path, default=Path("results/downloads"), help="where fetch put the sources")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="gets scores.csv and further tables")


def main(args: argparse.Namespace) -> None:
    """Compute the analysis on its requested runs and write `--out`."""
    catalogue = load_catalogue()
    entry = find_entry(catalogue, args.paper, "analysis", args.analysis)
    runs = select_display_runs(entry, select_paper_runs(catalogue, args.paper, args.scale, args.runs))
    numbers = select_published_rows(catalogue, entry["published"]) if "published" in entry else None
    # Snakemake deletes its outputs before a job; record.json is none of them.
    check_replaceable(args.out, ("*.csv", "analysis.json", "record.json"), required="record.json")
    analyse = import_function(entry["module"], "analyse", "workflow_scripts.analyses")

    # torch takes more than a second to import, so wrong names are reported first.
    import torch

    from workflow_scripts.analyses.trained_runs import TrainedRun
    from workflow_scripts.evaluation.published import read_published
    from workflow_scripts.evaluation.scores import write_scores
    from workflow_scripts.training.machine import describe_device

    trained: list[TrainedRun] = []
    sources_of_runs: list[AnalysedRun] = []
    for run in runs:
        folder = args.results / run_folder(run)
        source = read_source(catalogue, run, args.scale, folder)
        sources_of_runs.append(source)
        protocol, data = source.spec.protocol, args.results / data_folder(run.task)
        named = next(each for each in entry["runs"] if select_display_runs({"runs": [each]}, [run]))
        shown = (named.get("series", ""), named.get("readout"))
        trained.append(TrainedRun(run.task, run.method, run.variant, run.seed, protocol, folder, data, *shown))
    options = entry.get("options", {})
    sources, digests = verify_downloads(list_analysis_sources(catalogue, entry, runs, args.scale), args.downloads)
    if numbers is None:
        analysis = analyse(trained, options, *([sources] if "sources" in entry else []))
    else:
        analysis = analyse(read_published(catalogue.root / "papers" / entry["published"] / "published.csv"), options)
    fingerprint = fingerprint_analysis(entry, [source.spec for source in sources_of_runs], numbers)
    digests |= {source.spec.task: source.data_digest for source in sources_of_runs}
    with write_atomically(args.out) as out:
        out.mkdir()
        write_scores(out / "scores.csv", analysis.scores)
        for name, table in analysis.files.items():
            table.to_csv(out / f"{name}.csv", index=False, float_format="%.6g")
        content = {
            "paper": args.paper,
            "analysis": args.analysis,
            "scale": args.scale,
            "module": entry["module"],
            "options": options,
            "runs": [str(run) for run in runs],
            "protocol": find_worst_protocol(*(run.protocol for run in trained)) if trained else None,
            "notes": analysis.notes,
            "files": hash_files(out),
            "checkpoints_sha256": {
                str(run): source.weights_sha256 for run, source in zip(trained, sources_of_runs, strict=True)
            },
        }
        write_json(out / "analysis.json", content)
        made = make_record(fingerprint, digests, precision="fp32", computed_on=describe_device(torch.device("cpu")))
        write_json(out / "record.json", made)


@dataclass(frozen=True)
class AnalysedRun:
    """What an analysis has to know of a run that it reads."""

    spec: ModelSpec
    data_digest: str
    weights_sha256: str


def read_source(catalogue: Catalogue, run: Run, scale: str, folder: Path) -> AnalysedRun:
    """Read what made a run. Raises UserError if a file of a trained run was changed.

    Of given weights the models are not read, only their scores.
    """
    if run.weights:
        scored = read_mapping(folder / "eval/evaluation.json", "data_digest", "checkpoint_sha256")
        return AnalysedRun(resolve_run(catalogue, run, scale), scored["data_digest"], scored["checkpoint_sha256"])
    trained = read_run(folder)
    check_checkpoint(folder, trained)
    return AnalysedRun(trained.spec, trained.data_digest, trained.weights_sha256)
