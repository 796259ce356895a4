"""Score a trained run on the splits of its task."""

import argparse
import importlib
from pathlib import Path
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_files, read_json, write_atomically, write_json
from workflow_scripts.common.hashing import digest
from workflow_scripts.common.output_folder import check_replaceable
from workflow_scripts.common.validation import parse_as
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.run_specs import precision_as_made, resolve_evaluation, resolve_run
from workflow_scripts.config.runs import parse_run
from workflow_scripts.evaluation.scores import write_scores
from workflow_scripts.provenance.fingerprints import fingerprint_evaluation
from workflow_scripts.provenance.record import make_record
from workflow_scripts.tasks.settings import Evaluation
from workflow_scripts.tasks.trained_run import read_checked_run, read_run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--run-dir", type=Path, required=True, metavar="DIR", help="what train wrote")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="the data that the run was trained on")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="gets predictions.parquet and scores.csv"
    )
    parser.add_argument(
        "--settings",
        type=Path,
        metavar="FILE",
        help="splits, beam, max_length, batch_tokens as JSON, not the catalogue's",
    )
    parser.add_argument("--device", choices=("auto", "cpu", "cuda", "mps"), default="auto")
    parser.add_argument("--progress", choices=("auto", "bar", "lines", "none"), default="auto")


def main(args: argparse.Namespace) -> None:
    """Score one run."""
    settings = read_evaluation_settings(read_run(args.run_dir), args)
    check_replaceable(args.out, {"predictions.parquet", "scores.csv", "evaluation.json", "record.json"})

    run = read_checked_run(args.run_dir, args.data)

    import pyarrow.parquet as pq

    from workflow_scripts.tasks.base import Score
    from workflow_scripts.training.machine import choose_device, describe_device, set_seed_and_threads

    device, spec = choose_device(args.device), run["spec"]
    set_seed_and_threads(spec["seed"], spec["training"]["torch_threads"], device)
    score: Score = importlib.import_module(f"workflow_scripts.tasks.{spec['kind']}.scoring").score
    predictions, scores = score(run, args.run_dir / "checkpoint", args.data, settings, device, args.progress)
    run_columns = {key: spec[key] for key in ("task", "method", "variant", "seed", "protocol")}
    with write_atomically(args.out) as out:
        out.mkdir()
        pq.write_table(predictions, out / "predictions.parquet", compression="zstd")
        write_scores(out / "scores.csv", [run_columns | row for row in scores if "reason" not in row])
        files, kept = run["files"], spec["training"].get("also_keep", [])
        content = {
            "run": run["run"],
            "scale": run["scale"],
            "spec": settings.model_dump(),
            "data_digest": run["data_digest"],
            "files": hash_files(out),
            "checkpoint_sha256": files["checkpoint/model.safetensors"],
            "kept_sha256": {name: files[f"checkpoint/{name}.safetensors"] for name in kept},
            "absent": [row for row in scores if "reason" in row],  # measures that are undefined for this run
        }
        write_json(out / "evaluation.json", content)
        fingerprint, precision = fingerprint_evaluation(content["spec"], spec), spec["training"]["precision"]
        made = make_record(fingerprint, run["data_digest"], spec["seed"], precision, describe_device(device))
        write_json(out / "record.json", made)


def read_evaluation_settings(run: dict[str, Any], args: argparse.Namespace) -> Evaluation:
    """Read the settings from `--settings`, or from the catalogue for the run's name and scale.

    Raises UserError when the run was trained with another spec than the catalogue now gives it.
    """
    if args.settings:
        return parse_as(Evaluation, read_json(args.settings), args.settings)
    if run["scale"] is None:
        raise UserError(
            f"{args.run_dir} was trained from a spec file without a scale; say how to score it: --settings FILE"
        )
    catalogue = load_catalogue()
    precision = precision_as_made(catalogue, run["run"], run["scale"], run["spec"]["training"]["precision"])
    spec = resolve_run(catalogue, run["run"], run["scale"], precision)
    if digest(spec) != run["spec_digest"]:
        raise UserError(
            f"{args.run_dir / 'run.json'} is of another configuration: {describe_first_difference(run['spec'], spec)}; "
            "train the run again"
        )
    return Evaluation(**resolve_evaluation(catalogue, parse_run(catalogue, run["run"]), run["scale"]))


def describe_first_difference(before: Any, now: Any, key: str = "") -> str:
    """Describe the first key at which two specs differ: `training.batch_tokens was 1024 and is 2048`."""
    if isinstance(before, dict) and isinstance(now, dict):
        for name in sorted(before.keys() | now.keys()):
            if before.get(name) != now.get(name):
                return describe_first_difference(before.get(name), now.get(name), f"{key}.{name}".lstrip("."))
    return f"{key} was {before!r} and is {now!r}"
