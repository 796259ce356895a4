"""Train one run. An interrupted run resumes from its saved state and ends with the same numbers."""

import argparse
import shutil
import socket
import statistics
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, get_args

from workflow_scripts.commands.evaluate import add_machine_arguments
from workflow_scripts.commands.inputs import (
    add_spec_arguments,
    add_state_arguments,
    check_data,
    check_init,
    find_state,
    get_run_job_spec,
    hash_weights,
)
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import (
    check_replaceable,
    digest,
    hash_files,
    make_writable,
    read_mapping,
    write_atomically,
    write_json,
)
from workflow_scripts.common.result_folders import RunFolder, ScaleFolder
from workflow_scripts.common.scratch_folders import NEW, OF_ANOTHER_MACHINE
from workflow_scripts.common.system import JobCosts
from workflow_scripts.common.validation import parse_as
from workflow_scripts.provenance.record import add_output_digests, make_record
from workflow_scripts.provenance.run_job_spec import RunJobSpec
from workflow_scripts.provenance.spec_fingerprints import Fingerprint, fingerprint_training
from workflow_scripts.tasks.run_spec import RunSpec, read_run_spec
from workflow_scripts.training.settings import CHOSEN, Chosen, Precision, Training

if TYPE_CHECKING:
    import torch

    from workflow_scripts.common.progress import Reporter
    from workflow_scripts.tasks.base import TrainingSetup
    from workflow_scripts.training.state import StateFolder, TrainingState
    from workflow_scripts.training.stopping import StopRequested

ANY_DIGEST = "[0-9a-f]" * 16  # a pattern: what a folder of saved states was trained from


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_training_arguments(
        parser, "<task>/<method>/<variant>/seed-<n>", "folder for the checkpoint and run.json"
    )
    parser.add_argument(
        "--search", type=Path, metavar="FILE", help="chosen.json of the search before this run"
    )


def add_training_arguments(parser: argparse.ArgumentParser, run: str, out: str) -> None:
    """Add the arguments of the commands that train. `run` is the form of a run's name."""
    add_spec_arguments(parser, run)
    precisions = ("auto", *get_args(Precision))
    parser.add_argument(
        "--precision",
        choices=precisions,
        default="auto",
        help="with --run; auto is the catalogue's",
    )
    parser.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="prepared data of the task"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help=out)
    parser.add_argument(
        "--init", type=Path, metavar="DIR", help="checkpoint of the model that the run starts from"
    )
    add_state_arguments(parser)
    add_machine_arguments(parser)


def main(args: argparse.Namespace) -> None:
    """Train to the end and write `--out`.

    After signal n it saves the state and exits with 128 + n.
    """
    job_spec = get_run_job_spec(args)
    spec = check_training_spec(job_spec, args)
    search_result = read_search_result(spec, args.search)
    settings = spec.training
    if search_result:
        settings = settings.use_chosen(search_result)
    check_folders(args, job_spec, RunFolder(args.out).names)

    # torch takes more than a second to import, so wrong names and keys are reported first.
    from workflow_scripts.common.progress import Reporter
    from workflow_scripts.training.machine import choose_device
    from workflow_scripts.training.run import train_run
    from workflow_scripts.training.state import StateFolder
    from workflow_scripts.training.stopping import StopRequested

    device = choose_device(args.device)
    fingerprint = fingerprint_training(spec)
    input_digests = hash_inputs(spec, args.data, args.init)
    if search_result:
        input_digests["search_digest"] = digest(search_result.model_dump())
    folder = StateFolder(args.state, input_digests | {"code_digest": fingerprint.code})
    steps = settings.max_steps or 0
    with folder.lock(), Reporter(str(spec.run), steps, args.progress) as reporter:
        try:
            chosen_spec = replace(spec, training=settings)
            setup, state = train_run(
                chosen_spec, args.data, args.init, device, folder, reporter, args.save_every
            )
        except StopRequested as stop:
            stop_training(stop, reporter)
        training = FinishedTraining(setup, state, folder, device, settings)
        origin = TrainingOrigin(job_spec, spec, search_result, fingerprint, input_digests)
        write_training(args.out, training, origin)
        folder.remove()
    remove_other_states(args.state, ScaleFolder(Path()).training_state(spec.run, ANY_DIGEST))


def remove_other_states(state: Path, pattern: Path) -> None:
    """Remove what killed trainings of a run have saved with other settings, code or data.

    state: the folder of the one that has succeeded. pattern: of the end of such a path where
    ./reproduce has it. A folder elsewhere is of a person, who may have other files next to it.
    """
    if not state.match(str(pattern)):
        return
    for other in state.parent.glob(pattern.name):
        if other != state:
            remove_unused_state(other)


def remove_unused_state(folder: Path) -> None:
    """Remove a folder of saved states, of a training or of all pairs of a search.

    It stays where a process holds its lock. What another machine has written lately stays, too,
    since its locks may not be seen here.
    """
    from workflow_scripts.training.state import StateFolder

    try:
        age = time.time() - max(path.stat().st_mtime for path in [folder, *folder.glob("**/*")])
        locks = list(folder.glob("**/lock"))
        if not locks and age < NEW:  # its process may be about to take the lock
            return
        with ExitStack() as stack:
            for lock in locks:
                machine = lock.read_text("utf-8").rpartition(" on ")[2]
                if machine != socket.gethostname() and age < OF_ANOTHER_MACHINE:
                    return
                stack.enter_context(StateFolder(lock.parent, {}).lock())
            shutil.rmtree(folder, ignore_errors=True)
        if folder.exists():  # a network file system keeps a folder until no file in it is open
            folder.rmdir()
    except (UserError, OSError):  # it is in use, or was deleted meanwhile
        return


@dataclass(frozen=True)
class FinishedTraining:
    """What a training has made: the setup with its last weights, and the state at its end.

    folder: has the best weights. settings: of the training; if the run has a search, with the
    values that the search has chosen.
    """

    setup: "TrainingSetup"
    state: "TrainingState"
    folder: "StateFolder"
    device: "torch.device"
    settings: Training


@dataclass(frozen=True)
class TrainingOrigin:
    """What a training was made from. digests: of its inputs, by their keys in run.json."""

    job_spec: RunJobSpec
    spec: RunSpec
    search_result: Chosen | None
    fingerprint: Fingerprint
    digests: dict[str, str]


def write_training(path: Path, training: FinishedTraining, origin: TrainingOrigin) -> None:
    """Write the folder of a run: checkpoint, learning curve, manifest and record."""
    from workflow_scripts.training.history import write_history
    from workflow_scripts.training.run import write_checkpoint

    state = training.state
    with write_atomically(path) as out:
        run = RunFolder(out)
        run.checkpoint.mkdir(parents=True)
        write_checkpoint(run.checkpoint, training.setup, training.settings, state, training.folder)
        write_history(run.curve, state.history)
        manifest = describe_training(training, origin) | {"files": hash_files(out)}
        write_json(run.manifest, manifest)
        keep_scores(RunFolder(path), run)
        record = make_training_record(
            origin.fingerprint, origin.spec, origin.digests["data_digest"], training.device
        )
        record |= summarise_costs(state, training.device)
        record["analysis_plans"] = origin.job_spec.analysis_plans
        write_json(run.record, record)
        add_output_digests(run.record, [run.manifest])


def keep_scores(earlier: RunFolder, run: RunFolder) -> None:
    """Copy the scores of a training that is replaced, if the new one has the same weights.

    They are then those of a training that is repeated because its weights were deleted.
    """
    if read_weight_digests(earlier) != read_weight_digests(run):
        return
    for folder in (earlier.evaluation.path, earlier.interventions.path):
        if folder.exists():
            shutil.copytree(folder, run.path / folder.name, copy_function=shutil.copyfile)


def read_weight_digests(run: RunFolder) -> dict[str, str]:
    """Return the sha256 of each file of the checkpoint of a run; none without a valid manifest."""
    try:
        files = read_mapping(run.manifest, "files")["files"]
    except UserError:
        return {}
    prefix = f"{run.checkpoint.name}/"
    return {name: sha256 for name, sha256 in files.items() if name.startswith(prefix)}


def describe_training(training: FinishedTraining, origin: TrainingOrigin) -> dict[str, Any]:
    """Return the content of run.json, without the sha256 of the files."""
    spec = origin.spec
    parameters = training.setup.model.parameters()
    chosen = None
    if origin.search_result:
        chosen = origin.search_result.model_dump()
    return {
        "run": str(spec.run),
        "scale": origin.job_spec.scale,
        "protocol": spec.protocol,
        "spec": spec.to_json(),
        **origin.digests,
        "chosen": chosen,
        "parameters": sum(parameter.numel() for parameter in parameters),
        "steps": training.state.step,
        **describe_best_weights(training.state, training.settings),
    }


def check_folders(args: argparse.Namespace, job_spec: RunJobSpec, outputs: set[str]) -> None:
    """Check the folders and the data of a training before it starts.

    Sets the default of `--state`.
    """
    args.state = find_state(args)
    check_replaceable(args.out, outputs)
    make_writable(args.state)
    check_data(args.data, job_spec)


def stop_training(stop: "StopRequested", reporter: "Reporter") -> NoReturn:
    """Exit with the code of a process that a signal ended."""
    reporter.print_line(
        f"stopped at step {stop.step}, state saved; run the same command again to continue"
    )
    sys.exit(128 + stop.number)


def describe_best_weights(state: "TrainingState", settings: Training) -> dict[str, Any]:
    """Return the fields of run.json about the weights that validation has chosen.

    kept: split -> step and value of further weights, which are the best on that split.
    """
    best = state.best[CHOSEN]
    best_validation = {}
    if settings.selection:
        best_validation[settings.selection.metric] = best.value
    kept = {}
    for split, weights in state.best.items():
        if split != CHOSEN:
            kept[split] = {"step": weights.step, "value": weights.value}
    return {"best_step": best.step, "best_validation": best_validation, "kept": kept}


def make_training_record(
    fingerprint: Fingerprint,
    spec: RunSpec,
    data_digest: str,
    device: "torch.device",
    costs_before: JobCosts | None = None,
) -> dict[str, Any]:
    """Return the fields of record.json for a training or a search.

    costs_before: of earlier processes of the search.
    """
    from workflow_scripts.training.machine import describe_device

    on = describe_device(device)
    return make_record(fingerprint, data_digest, spec.seed, spec.precision, on, costs_before)


def hash_inputs(spec: RunSpec, data: Path, init: Path | None) -> dict[str, str]:
    """Return the digests of the inputs of a training: its spec, data and initial weights."""
    from workflow_scripts.data.prepared import digest_data

    digests = {"spec_digest": spec.digest, "data_digest": digest_data(data)}
    if init:
        digests["init_digest"] = hash_weights(init)
    return digests


def summarise_costs(state: "TrainingState", device: "torch.device") -> dict[str, Any]:
    """Return times and memory of a finished training for record.json.

    Times are sums over all invocations, without their start and end. Memory is the maximum over
    them.
    """
    attempts = state.attempts
    seconds_per_step = 0.0
    measured = state.steady_seconds or state.interval_seconds
    if measured:
        seconds_per_step = statistics.median(measured)
    steps_per_second = None
    if seconds_per_step:
        steps_per_second = 1 / seconds_per_step
    gpu_seconds = 0.0
    peak_gpu_memory_bytes = None
    if device.type == "cuda":
        gpu_seconds = state.seconds
        peak_gpu_memory_bytes = max(attempt.peak_gpu_memory_bytes or 0 for attempt in attempts)
    gpu_processes = [attempt.gpu_processes for attempt in attempts if attempt.gpu_processes]
    return {
        "resumed": state.resumed,
        "seconds": state.seconds,
        "cpu_seconds": sum(attempt.cpu_seconds for attempt in attempts),
        "gpu_seconds": gpu_seconds,
        "started": attempts[0].started,
        "peak_memory_bytes": max(attempt.peak_memory_bytes for attempt in attempts),
        "peak_gpu_memory_bytes": peak_gpu_memory_bytes,
        "gpu_processes": max(gpu_processes, default=None),
        "attempts": [asdict(attempt) for attempt in attempts],
        "seconds_per_step": seconds_per_step,
        "steps_per_second": steps_per_second,
    }


def read_search_result(spec: RunSpec, file: Path | None) -> Chosen | None:
    """Return the training settings that the search before a run chose; None without a search.

    Raises UserError if the file is missing or of another spec. Seed and parent run may differ: one
    search is for all seeds.
    """
    if spec.search and file is None:
        raise UserError(f"{spec.variant_key} needs the chosen.json of its search; pass --search")
    if file is None:
        return None
    if not spec.search:
        raise UserError(f"{spec.variant_key} has no hyperparameter search; remove --search")
    content = read_mapping(file, "spec", "chosen")
    searched = read_run_spec(content["spec"], file, "spec")
    if replace(searched, seed=spec.seed, origin=spec.origin) != spec:
        raise UserError(
            f"{file} is from another configuration of {spec.variant_key}; run the search again"
        )
    return parse_as(Chosen, content["chosen"], file, "chosen")


def check_training_spec(job_spec: RunJobSpec, args: argparse.Namespace) -> RunSpec:
    """Return the spec of a training.

    Raises UserError if nothing is trained, or if `--init` does not fit the spec.
    """
    spec = job_spec.spec
    place = str(args.spec or spec.run)
    if not isinstance(spec, RunSpec):
        raise UserError(f"{place} has given weights and no training; score them with evaluate")
    check_init(place, spec.origin, args.init, "--init")
    return spec
