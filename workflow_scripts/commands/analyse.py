"""Compute one analysis of a paper from its trained runs: scores.csv, and tables for its figures."""

import argparse
from pathlib import Path

from workflow_scripts.common.files import check_replaceable, hash_files, read_mapping, write_atomically, write_json
from workflow_scripts.common.plug_ins import import_function
from workflow_scripts.config.displays import (
    add_run_arguments,
    find_analysis,
    list_analysis_sources,
    select_display_runs,
    select_paper_runs,
)
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.paths import data_folder, run_folder
from workflow_scripts.config.specs import resolve_run
from workflow_scripts.data.sources.declared import verify_downloads
from workflow_scripts.evaluation.protocol import find_worst_protocol
from workflow_scripts.provenance.fingerprints import fingerprint_analysis, select_analysed_numbers
from workflow_scripts.provenance.record import make_record
from workflow_scripts.tasks.checkpoints import check_checkpoint, read_run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_run_arguments(parser)
    parser.add_argument("--analysis", required=True, help="name under `analyses` in the paper's displays.yaml")
    parser.add_argument("--downloads", type=Path, default=Path("results/downloads"), help="where fetch put the sources")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="gets scores.csv and further tables")


def main(args: argparse.Namespace) -> None:
    """Compute the analysis on its requested runs and write `--out`."""
    catalogue = load_catalogue()
    entry = find_analysis(catalogue, args.paper, args.analysis)
    runs = select_display_runs(entry, select_paper_runs(catalogue, args.paper, args.scale, args.runs))
    numbers = select_analysed_numbers(catalogue, entry)
    # Snakemake deletes its outputs before a job; record.json is none of them.
    check_replaceable(args.out, ("*.csv", "analysis.json", "record.json"), required="record.json")
    analyse = import_function(entry.module, "analyse", "workflow_scripts.analyses")

    # torch takes more than a second to import, so wrong names are reported first.
    import torch

    from workflow_scripts.analyses.trained_runs import TrainedRun
    from workflow_scripts.evaluation.published import read_published
    from workflow_scripts.evaluation.scores import write_scores
    from workflow_scripts.training.machine import describe_device

    trained, made_by = [], []
    for run in runs:
        folder = args.results / run_folder(run)
        if run.weights:  # its models are not read, only its scores
            scored = read_mapping(folder / "eval/evaluation.json", "data_digest", "checkpoint_sha256")
            files = {"checkpoint/model.safetensors": scored["checkpoint_sha256"]}
            made_by.append(scored | {"spec": resolve_run(catalogue, run, args.scale), "files": files})
        else:
            made_by.append(read_run(folder))
            check_checkpoint(folder, made_by[-1])
        protocol, data = made_by[-1]["spec"]["protocol"], args.results / data_folder(run.task)
        named = next(runs_entry for runs_entry in entry.runs if run.unseeded in runs_entry.list_variants())
        labels = (named.series or "", named.readout)
        trained.append(TrainedRun(run.task, run.method, run.variant, run.seed, protocol, folder, data, *labels))
    sources, digests = verify_downloads(list_analysis_sources(catalogue, entry, runs, args.scale), args.downloads)
    if entry.published is None:
        analysis = analyse(trained, entry.options, *([sources] if entry.sources else []))
    else:
        published = read_published(catalogue.root / "papers" / entry.published / "published.csv")
        analysis = analyse(published, entry.options)
    fingerprint = fingerprint_analysis(entry, [made["spec"] for made in made_by], numbers)
    digests |= {run.task: made["data_digest"] for run, made in zip(trained, made_by, strict=True)}
    with write_atomically(args.out) as out:
        out.mkdir()
        write_scores(out / "scores.csv", analysis.scores)
        for name, table in analysis.files.items():
            table.to_csv(out / f"{name}.csv", index=False, float_format="%.6g")
        content = {
            "paper": args.paper,
            "analysis": args.analysis,
            "scale": args.scale,
            "module": entry.module,
            "options": entry.options,
            "runs": [str(run) for run in runs],
            "protocol": find_worst_protocol(*(run.protocol for run in trained)) if trained else None,
            "notes": analysis.notes,
            "files": hash_files(out),
            "checkpoints_sha256": {
                str(run): made["files"]["checkpoint/model.safetensors"]
                for run, made in zip(trained, made_by, strict=True)
            },
        }
        write_json(out / "analysis.json", content)
        made = make_record(fingerprint, digests, precision="fp32", computed_on=describe_device(torch.device("cpu")))
        write_json(out / "record.json", made)
