"""Score a trained run on the splits of its task."""

import argparse
import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_files, read_json, write_atomically, write_json
from workflow_scripts.common.hashing import digest
from workflow_scripts.common.output_folder import check_replaceable
from workflow_scripts.common.validation import parse_as
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.run_specs import infer_precision, resolve_evaluation, resolve_run
from workflow_scripts.config.runs import parse_run
from workflow_scripts.evaluation.scores import write_scores
from workflow_scripts.provenance.fingerprints import Fingerprint, fingerprint_evaluation
from workflow_scripts.provenance.record import make_record
from workflow_scripts.tasks.settings import Evaluation
from workflow_scripts.tasks.trained_run import read_checked_run, read_run
from workflow_scripts.workflow.changes import find_differences

if TYPE_CHECKING:
    import torch

RUN_COLUMNS = ("task", "method", "variant", "seed", "protocol")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_scoring_arguments(parser, "folder for predictions.parquet and scores.csv")


def add_scoring_arguments(parser: argparse.ArgumentParser, out: str) -> None:
    """Add the arguments of the commands that score a trained run."""
    parser.add_argument("--run-dir", type=Path, required=True, metavar="DIR", help="folder that train wrote")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="data that the run was trained on")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help=out)
    parser.add_argument("--settings", type=Path, metavar="FILE", help="settings as JSON, instead of the catalogue's")
    add_machine_arguments(parser)


def add_machine_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say where a model runs and how its progress is shown."""
    parser.add_argument("--device", choices=("auto", "cpu", "cuda", "mps"), default="auto")
    parser.add_argument("--progress", choices=("auto", "bar", "lines", "none"), default="auto")


def main(args: argparse.Namespace) -> None:
    """Score one run."""
    settings = read_evaluation_settings(read_run(args.run_dir), args)
    check_replaceable(args.out, {"predictions.parquet", "scores.csv", "evaluation.json", "record.json"})

    run = read_checked_run(args.run_dir, args.data)

    import pyarrow.parquet as pq

    from workflow_scripts.tasks.base import Score
    from workflow_scripts.training.machine import choose_device, set_seed_and_threads

    device, spec = choose_device(args.device), run["spec"]
    set_seed_and_threads(spec["seed"], spec["training"]["torch_threads"], device)
    score: Score = importlib.import_module(f"workflow_scripts.tasks.{spec['kind']}.scoring").score
    predictions, scores = score(run, args.run_dir / "checkpoint", args.data, settings, device, args.progress)
    run_columns = {key: spec[key] for key in RUN_COLUMNS}
    kept = spec["training"].get("also_keep", [])
    with write_atomically(args.out) as out:
        out.mkdir()
        pq.write_table(predictions, out / "predictions.parquet", compression="zstd")
        write_scores(out / "scores.csv", [run_columns | row for row in scores if "reason" not in row])
        content = {
            "kept_sha256": {name: run["files"][f"checkpoint/{name}.safetensors"] for name in kept},
            "absent": [row for row in scores if "reason" in row],  # metrics that are undefined for this run
        }
        fingerprint = fingerprint_evaluation(settings.model_dump(), spec)
        write_scoring_records(out, "evaluation.json", run, fingerprint, device, **content)


def write_scoring_records(
    out: Path, name: str, run: dict, fingerprint: Fingerprint, device: "torch.device", **content: Any
) -> None:
    """Write the manifest `name` of the files in `out`, with `content`, and record.json."""
    from workflow_scripts.training.machine import describe_device

    manifest = {
        "run": run["run"],
        "scale": run["scale"],
        "spec": fingerprint.spec,
        "data_digest": run["data_digest"],
        "files": hash_files(out),
        "checkpoint_sha256": run["files"]["checkpoint/model.safetensors"],
    }
    write_json(out / name, manifest | content)
    seed, precision = run["spec"]["seed"], run["spec"]["training"]["precision"]
    made = make_record(fingerprint, run["data_digest"], seed, precision, describe_device(device))
    write_json(out / "record.json", made)


def read_evaluation_settings(run: dict[str, Any], args: argparse.Namespace) -> Evaluation:
    """Read the settings from `--settings`, or from the catalogue for the run's name and scale.

    Raises UserError when the run was trained with another spec than the catalogue now gives it.
    """
    if args.settings:
        return parse_as(Evaluation, read_json(args.settings), args.settings)
    check_scale(run, args)
    catalogue = load_catalogue()
    precision = infer_precision(catalogue, run["run"], run["scale"], run["spec"]["training"]["precision"])
    spec = resolve_run(catalogue, run["run"], run["scale"], precision)
    if digest(spec) != run["spec_digest"]:
        key, before, now = next(find_differences(run["spec"], spec), ("spec_digest", run["spec_digest"], digest(spec)))
        raise UserError(
            f"{args.run_dir / 'run.json'} has another configuration than the catalogue: {key} was {before!r} and is "
            f"{now!r}; train the run again"
        )
    return Evaluation(**resolve_evaluation(catalogue, parse_run(catalogue, run["run"]), run["scale"]))


def check_scale(run: dict[str, Any], args: argparse.Namespace) -> None:
    """Raise UserError if the run has no scale, so that the catalogue has no settings for it."""
    if run["scale"] is None:
        raise UserError(f"{args.run_dir} was trained from a spec file without a scale; pass --settings FILE")
