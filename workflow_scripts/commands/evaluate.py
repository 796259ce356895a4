"""Score a trained run, or given weights, on the splits of a task."""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from workflow_scripts.commands.inputs import check_data, check_init, hash_weights
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import (
    check_replaceable,
    hash_files,
    read_json,
    read_mapping,
    write_atomically,
    write_json,
)
from workflow_scripts.common.validation import Model, parse_as
from workflow_scripts.config.catalogue import Catalogue, Run, parse_run
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.requested import hash_plans
from workflow_scripts.config.specs import (
    find_parent_run,
    infer_precision,
    resolve_evaluation,
    resolve_run,
    resolve_training,
)
from workflow_scripts.evaluation.scores import write_scores
from workflow_scripts.provenance.fingerprints import Fingerprint, fingerprint_evaluation
from workflow_scripts.provenance.record import make_record
from workflow_scripts.tasks.checkpoints import Checkpoint, FinishedRun, read_checked_run, read_run
from workflow_scripts.tasks.run_spec import GivenWeightsSpec, RunSpec
from workflow_scripts.tasks.settings import Evaluation
from workflow_scripts.workflow.changes import find_differences, shorten_value

if TYPE_CHECKING:
    import torch

RUN_COLUMNS = ("task", "method", "variant", "seed", "protocol")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_scoring_arguments(parser, "folder for predictions.parquet and scores.csv")


def add_scoring_arguments(parser: argparse.ArgumentParser, out: str) -> None:
    """Add the arguments of the commands that score a trained run."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--run-dir", type=Path, metavar="DIR", help="folder that train wrote")
    name = "<task>/<method>/<variant>@<weights>/seed-<n>"
    what.add_argument("--run", metavar="ID", help=f"{name} of the catalogue: given weights")
    parser.add_argument("--scale", help="scale of the catalogue; needed with --run")
    parser.add_argument("--weights", type=Path, metavar="DIR", help="with --run: checkpoint or model of the hub")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="prepared data of the task")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help=out)
    parser.add_argument("--settings", type=Path, metavar="FILE", help="settings as JSON, instead of the catalogue's")
    add_machine_arguments(parser)


def add_machine_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say where a model runs and how its progress is shown."""
    parser.add_argument("--device", choices=("auto", "cpu", "cuda", "mps"), default="auto")
    parser.add_argument("--progress", choices=("auto", "bar", "lines", "none"), default="auto")


def main(args: argparse.Namespace) -> None:
    """Score one run."""
    run = read_scored_run(args)
    settings = read_scoring_settings(Evaluation, resolve_evaluation, run, args)
    check_replaceable(args.out, {"predictions.parquet", "scores.csv", "evaluation.json", "record.json"})

    import pyarrow.parquet as pq

    from workflow_scripts.training.machine import choose_device, set_seed_and_threads

    device, spec = choose_device(args.device), run.spec
    set_seed_and_threads(spec.seed, spec.torch_threads, device)
    with open_checkpoint(args, run, device) as (folder, checkpoint_sha256):
        labels = read_mapping(args.data / "dataset.json").get("labels")
        checkpoint = Checkpoint(run.name, folder, spec, settings, labels)
        predictions, scores = checkpoint.score(args.data, device, args.progress)
    run_columns = {key: getattr(spec, key) for key in RUN_COLUMNS}
    with write_atomically(args.out) as out:
        out.mkdir()
        pq.write_table(predictions, out / "predictions.parquet", compression="zstd")
        write_scores(out / "scores.csv", [run_columns | row for row in scores if "reason" not in row])
        content = {
            "kept_sha256": {name: run.files[f"checkpoint/{name}.safetensors"] for name in spec.kept_checkpoints},
            "absent": [row for row in scores if "reason" in row],  # metrics that are undefined for this run
        }
        fingerprint = fingerprint_evaluation(settings, run.shared_spec)
        write_scoring_records(out, "evaluation.json", run, fingerprint, device, checkpoint_sha256, **content)


@dataclass(frozen=True)
class ScoredRun:
    """A run whose model is scored: a training, or given weights.

    shared_spec: the spec of all seeds. files: of a training, those of its run.json.
    """

    name: str
    scale: str | None
    spec: RunSpec | GivenWeightsSpec
    shared_spec: RunSpec | GivenWeightsSpec
    data_digest: str
    files: dict[str, str]


def read_scored_run(args: argparse.Namespace) -> ScoredRun:
    """Return the run of `--run-dir`, or that of `--run`, which scores given weights.

    Raises UserError if the weights or the data are not those of the spec.
    """
    if args.run_dir:
        trained = read_run(args.run_dir)
        return ScoredRun(trained.name, trained.scale, trained.spec, trained.spec, trained.data_digest, trained.files)

    from workflow_scripts.data.prepared import digest_data

    if not args.scale:
        raise UserError("--run needs --scale, e.g. --scale demo")
    catalogue = load_catalogue()
    run, precision = parse_run(catalogue, args.run), "auto"
    if not run.weights:
        raise UserError(f"{run} names no weights, <variant>@<weights>; score a training with --run-dir")
    if args.weights and (parent := find_parent_run(catalogue, run, args.scale)):
        folder, origin = args.weights.parent, read_run(args.weights.parent)
        if origin.name != str(parent):
            raise UserError(f"{folder} holds {origin.name}, but the weights are those of {parent}; correct --weights")
        precision = infer_precision(catalogue, parent, args.scale, origin.spec.precision)
        check_spec(folder / "run.json", origin, resolve_training(catalogue, parent, args.scale, precision))
    spec, shared = (resolve_run(catalogue, each, args.scale, precision) for each in (run, replace(run, seed=0)))
    check_init(run, spec.origin, args.weights, "--weights")
    check_data(args.data, spec.task, args.scale)
    return ScoredRun(str(run), args.scale, spec, shared, digest_data(args.data), {})


@contextmanager
def open_checkpoint(args: argparse.Namespace, run: ScoredRun, device: "torch.device") -> Iterator[tuple[Path, str]]:
    """Yield the folder with the weights that are scored, and their sha256. Random weights are drawn for the block.

    Raises UserError if the checkpoint or the data of a trained run were changed.
    """
    if args.run_dir:
        yield args.run_dir / "checkpoint", read_checked_run(args.run_dir, args.data).weights_sha256
    elif args.weights:
        yield args.weights, hash_weights(args.weights)
    else:
        from workflow_scripts.training.run import write_initial_checkpoint

        assert isinstance(run.spec, GivenWeightsSpec) and run.spec.start
        with TemporaryDirectory() as folder:
            write_initial_checkpoint(Path(folder), run.spec.start, args.data, device)
            yield Path(folder), hash_weights(Path(folder))


def write_scoring_records(
    out: Path,
    name: str,
    run: ScoredRun,
    fingerprint: Fingerprint,
    device: "torch.device",
    checkpoint_sha256: str,
    **content: Any,
) -> None:
    """Write the manifest `name` of the files in `out`, with `content`, and record.json."""
    from workflow_scripts.training.machine import describe_device

    manifest = {
        "run": run.name,
        "scale": run.scale,
        "spec": fingerprint.spec,
        "data_digest": run.data_digest,
        "files": hash_files(out),
        "checkpoint_sha256": checkpoint_sha256,
    }
    record = make_record(fingerprint, run.data_digest, run.spec.seed, run.spec.precision, describe_device(device))
    if isinstance(run.spec, GivenWeightsSpec):  # of a trained run, its own records have both
        manifest["weights"] = run.spec.to_json()["init"]
        catalogue = load_catalogue()
        assert run.scale
        record["analysis_plans"] = hash_plans(catalogue, parse_run(catalogue, run.name), run.scale)
    write_json(out / name, manifest | content)
    write_json(out / "record.json", record)


def read_scoring_settings(
    model: type[Model], resolve: Callable[[Catalogue, Run, str], Model], run: ScoredRun, args: argparse.Namespace
) -> Model:
    """Read the settings from `--settings`, or from the catalogue for the run's name and scale.

    Raises UserError if the run has no scale, or was trained with another spec than the catalogue gives it.
    """
    if args.settings:
        return parse_as(model, read_json(args.settings), args.settings)
    if run.scale is None:
        raise UserError(f"{args.run_dir} was trained from a spec file without a scale; pass --settings FILE")
    catalogue = load_catalogue()
    if args.run_dir:
        precision = infer_precision(catalogue, run.name, run.scale, run.spec.precision)
        trained = read_run(args.run_dir)
        check_spec(args.run_dir / "run.json", trained, resolve_training(catalogue, run.name, run.scale, precision))
    return resolve(catalogue, parse_run(catalogue, run.name), run.scale)


def check_spec(file: Path, run: FinishedRun, spec: RunSpec) -> None:
    """Raise UserError unless the run of a run.json was trained with `spec`."""
    if spec.digest != run.spec_digest:
        before, now = run.spec.to_json(), spec.to_json()
        key, *values = next(find_differences(before, now), ("spec_digest", run.spec_digest, spec.digest))
        before, now = map(shorten_value, values)
        what = f"another configuration than the catalogue: {key} was {before} and is {now}"
        raise UserError(f"{file} has {what}; train the run again")
