"""Score a trained run, or given weights, on the splits of a task."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from workflow_scripts.commands.inputs import (
    add_spec_arguments,
    check_data,
    check_init,
    get_run_job_spec,
    hash_weights,
)
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import (
    check_replaceable,
    hash_files,
    read_json,
    read_mapping,
    write_atomically,
    write_json,
)
from workflow_scripts.common.result_folders import (
    DataFolder,
    EvaluationFolder,
    InterventionFolder,
    RunFolder,
)
from workflow_scripts.common.system import JobCosts
from workflow_scripts.common.validation import Model, parse_as
from workflow_scripts.evaluation.scores import Score, write_scores
from workflow_scripts.provenance.record import add_output_digests, make_record
from workflow_scripts.provenance.run_job_spec import RunJobSpec
from workflow_scripts.provenance.spec_fingerprints import Fingerprint, fingerprint_evaluation
from workflow_scripts.tasks.checkpoints import read_checked_run, read_run
from workflow_scripts.tasks.packages import load_kind_settings
from workflow_scripts.tasks.run_spec import GivenWeightsSpec, RunSpec

if TYPE_CHECKING:
    import torch


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_scoring_arguments(parser, "folder for predictions.parquet and scores.csv")


def add_scoring_arguments(parser: argparse.ArgumentParser, out: str) -> None:
    """Add the arguments of the commands that score a run."""
    add_spec_arguments(parser, "<task>/<method>/<variant>[@<weights>]/seed-<n>", required=False)
    parser.add_argument("--run-dir", type=Path, metavar="DIR", help="folder that train wrote")
    parser.add_argument(
        "--weights",
        type=Path,
        metavar="DIR",
        help="of given weights: checkpoint or model of the hub",
    )
    parser.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="prepared data of the task"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help=out)
    parser.add_argument(
        "--settings", type=Path, metavar="FILE", help="settings as JSON, instead of those of --spec"
    )
    add_machine_arguments(parser)


def add_machine_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say where a model runs and how its progress is shown."""
    parser.add_argument("--device", choices=("auto", "cpu", "cuda", "mps"), default="auto")
    parser.add_argument("--progress", choices=("auto", "bar", "lines", "none"), default="auto")


def main(args: argparse.Namespace) -> None:
    """Score one run."""
    scored = read_scored_run(args)
    spec = scored.spec
    settings_of_spec = scored.job_spec.evaluation if scored.job_spec else None
    evaluation_class = load_kind_settings(spec.kind).evaluation
    settings = read_scoring_settings(args, evaluation_class, settings_of_spec)
    check_replaceable(args.out, EvaluationFolder(args.out).names)

    import pyarrow.parquet as pq

    from workflow_scripts.tasks.base import Checkpoint, load_kind
    from workflow_scripts.training.machine import choose_device, set_seed_and_threads

    device = choose_device(args.device)
    set_seed_and_threads(spec.seed, spec.torch_threads, device)
    with open_checkpoint(args, scored, device) as (weights, checkpoint_sha256):
        labels = read_mapping(DataFolder(args.data).manifest).get("labels")
        checkpoint = Checkpoint(str(spec.run), weights, spec, settings, labels)
        kind = load_kind(spec.kind)
        model = kind.load_model(checkpoint).to(device).eval()
        evaluation = kind.score(checkpoint, model, args.data, device, args.progress)
    scores = [name_run(score, spec) for score in evaluation.scores]
    absent = [undefined._asdict() for undefined in evaluation.undefined]
    fingerprint = fingerprint_evaluation(settings, scored.shared_spec)
    with write_atomically(args.out) as out:
        folder = EvaluationFolder(out)
        out.mkdir()
        pq.write_table(evaluation.predictions, folder.predictions, compression="zstd")
        write_scores(folder.scores, scores)
        write_scoring_records(
            folder,
            scored,
            fingerprint,
            device,
            checkpoint_sha256,
            kept_sha256=scored.kept_sha256,
            absent=absent,
        )


def name_run(score: Score, spec: RunSpec | GivenWeightsSpec) -> Score:
    """Return a score of a run with the names of the run."""
    return score._replace(
        task=spec.task,
        method=spec.method,
        variant=spec.variant,
        seed=spec.seed,
        protocol=spec.protocol,
    )


@dataclass(frozen=True)
class ScoredRun:
    """A run whose model is scored: a finished training, or given weights.

    job_spec: None for a training without a spec file. shared_spec: the spec that all seeds of the
    variant share. files: name -> sha256 of the files that the training's run.json lists; empty for
    given weights.
    """

    scale: str | None
    job_spec: RunJobSpec | None
    spec: RunSpec | GivenWeightsSpec
    shared_spec: RunSpec | GivenWeightsSpec
    data_digest: str
    files: dict[str, str]

    @property
    def kept_sha256(self) -> dict[str, str]:
        """The sha256 of the weights that a training kept besides the best ones, by their names."""
        digests = {}
        for name in self.spec.kept_checkpoints:
            weights = RunFolder(Path()).weights_at(name)
            digests[name] = self.files[weights.as_posix()]
        return digests


def read_scored_run(args: argparse.Namespace) -> ScoredRun:
    """Return the training of `--run-dir`, or else weights that the spec names.

    Raises UserError if the weights or the data are not those of the spec.
    """
    job_spec = None
    if args.job_spec or args.spec:
        job_spec = get_run_job_spec(args)
    if args.run_dir:
        trained = read_run(args.run_dir)
        if job_spec and job_spec.spec.run != trained.run:
            raise UserError(
                f"{args.run_dir} holds {trained.run}, and the spec is of {job_spec.spec.run}"
            )
        return ScoredRun(
            scale=trained.scale,
            job_spec=job_spec,
            spec=trained.spec,
            shared_spec=trained.spec,
            data_digest=trained.data_digest,
            files=trained.files,
        )
    if job_spec is None:
        raise UserError(
            "name a trained run with --run-dir, or given weights with --spec, "
            "or with --run and --scale"
        )
    return read_given_weights(args, job_spec)


def read_given_weights(args: argparse.Namespace, job_spec: RunJobSpec) -> ScoredRun:
    """Return the run of a spec that scores given weights.

    Raises UserError if the weights or the data are others.
    """
    from workflow_scripts.data.prepared import digest_data

    spec = job_spec.spec
    if not isinstance(spec, GivenWeightsSpec):
        raise UserError(
            f"{spec.run} names no weights, <variant>@<weights>; score a training with --run-dir"
        )
    check_init(str(spec.run), spec.origin, args.weights, "--weights")
    check_data(args.data, job_spec)
    return ScoredRun(
        scale=job_spec.scale,
        job_spec=job_spec,
        spec=spec,
        shared_spec=job_spec.shared_spec or spec,
        data_digest=digest_data(args.data),
        files={},
    )


@contextmanager
def open_checkpoint(
    args: argparse.Namespace, scored: ScoredRun, device: "torch.device"
) -> Iterator[tuple[Path, str]]:
    """Yield the folder with the weights that are scored, and their sha256.

    Random weights are drawn for the block. Raises UserError if the checkpoint or the data of a
    trained run were changed.
    """
    if args.run_dir:
        trained = read_checked_run(args.run_dir, args.data)
        yield RunFolder(args.run_dir).checkpoint, trained.weights_sha256
    elif args.weights:
        yield args.weights, hash_weights(args.weights)
    else:
        from workflow_scripts.training.run import write_initial_checkpoint

        assert isinstance(scored.spec, GivenWeightsSpec) and scored.spec.start
        with TemporaryDirectory() as temporary:
            folder = Path(temporary)
            write_initial_checkpoint(folder, scored.spec.start, args.data, device)
            yield folder, hash_weights(folder)


def write_scoring_records(
    folder: EvaluationFolder | InterventionFolder,
    scored: ScoredRun,
    fingerprint: Fingerprint,
    device: "torch.device",
    checkpoint_sha256: str,
    costs_before: JobCosts | None = None,
    **content: Any,
) -> None:
    """Write the manifest of the files in a folder, with `content`, and the record.

    costs_before: of earlier processes of the job that this one has continued.
    """
    from workflow_scripts.training.machine import describe_device

    manifest = {
        "run": str(scored.spec.run),
        "scale": scored.scale,
        "spec": fingerprint.spec,
        "data_digest": scored.data_digest,
        "files": hash_files(folder.path),
        "checkpoint_sha256": checkpoint_sha256,
    }
    record = make_record(
        fingerprint,
        scored.data_digest,
        scored.spec.seed,
        scored.spec.precision,
        describe_device(device),
        costs_before,
    )
    if isinstance(scored.spec, GivenWeightsSpec):  # of a trained run, its own records have both
        manifest["weights"] = scored.spec.to_json()["init"]
        assert scored.job_spec
        record["analysis_plans"] = scored.job_spec.analysis_plans
    write_json(folder.manifest, manifest | content)
    write_json(folder.record, record)
    add_output_digests(folder.record, [folder.manifest])


def read_scoring_settings(
    args: argparse.Namespace, model: type[Model], settings_of_spec: Model | None
) -> Model:
    """Return the settings of `--settings`, else those of the spec.

    Raises UserError if there are none.
    """
    if args.settings:
        return parse_as(model, read_json(args.settings), args.settings)
    if settings_of_spec is None:
        place = args.run_dir or args.spec
        raise UserError(f"{place}: how to score it is unknown; pass --spec or --settings FILE")
    return settings_of_spec
