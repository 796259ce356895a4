"""Choose the learning rate and batch size of a variant: train each pair of its `search` with one seed.

The best pair on the validation set is written to chosen.json, which the trainings of the variant read. search.csv lists
all pairs. An interrupted search keeps its finished pairs and resumes the training of the current one.
"""

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from workflow_scripts.commands.inputs import get_planned_run
from workflow_scripts.commands.train import (
    add_training_arguments,
    check_folders,
    check_training_spec,
    hash_inputs,
    make_training_record,
    stop_training,
)
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import (
    hash_files,
    make_writable,
    read_json,
    write_atomically,
    write_csv,
    write_json,
)
from workflow_scripts.provenance.spec_fingerprints import fingerprint_search
from workflow_scripts.tasks.run_spec import RunSpec
from workflow_scripts.tasks.settings import CHOSEN, Chosen

if TYPE_CHECKING:
    import torch


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_training_arguments(
        parser, "<task>/<method>/<variant>", "folder for search.csv and chosen.json"
    )


def main(args: argparse.Namespace) -> None:
    """Train every pair and write `--out`. After signal n it saves the state and exits with 128 + n."""
    planned = get_planned_run(args)
    spec = check_training_spec(planned, args)
    search = spec.search
    if not search or not search.learning_rate or spec.seed != search.seed:
        place = args.spec or spec.run_name
        raise UserError(f"{place}: key 'search' must have values and the seed of the spec")
    check_folders(args, planned, {"search.csv", "chosen.json", "record.json"})

    # torch takes more than a second to import, so wrong names and keys are reported first.
    from workflow_scripts.training.machine import choose_device
    from workflow_scripts.training.search import COLUMNS, list_candidates

    fingerprint, device = fingerprint_search(spec), choose_device(args.device)
    origin = hash_inputs(spec, args.data, args.init)
    made_from, file = origin | {"code_digest": fingerprint.code}, args.state / "done.json"
    done = read_json(file) if file.exists() else {**made_from, "pairs": []}
    for name, value in made_from.items():
        if done[name] != value:
            what = name.removesuffix("_digest")
            raise UserError(
                f"{file} was made with another {what}; delete {args.state} to start again"
            )
    candidates = list_candidates(spec.training, search, args.data)
    for candidate in candidates[len(done["pairs"]) :]:
        done["pairs"].append(resume_candidate(args, spec, candidate, made_from, device))
        write_json(file, done)
    # the first of equal ones
    best = max(range(len(candidates)), key=lambda row: done["pairs"][row]["value"])
    with write_atomically(args.out) as out:
        out.mkdir()
        write_csv(out / "search.csv", COLUMNS, done["pairs"])
        content = {
            "scale": planned.scale,
            "spec": spec.to_json(),
            **origin,
            "best": done["pairs"][best],
            "files": hash_files(out),
        }
        content["chosen"] = candidates[best].model_dump()
        write_json(out / "chosen.json", content)
        write_json(
            out / "record.json",
            make_training_record(fingerprint, spec, origin["data_digest"], device),
        )
    file.unlink()


def resume_candidate(
    args: argparse.Namespace,
    spec: RunSpec,
    candidate: Chosen,
    made_from: dict[str, str],
    device: "torch.device",
) -> dict[str, Any]:
    """Train one pair, or resume its training, and return its row of search.csv."""
    from workflow_scripts.common.progress import Reporter
    from workflow_scripts.training.loop import StopRequested
    from workflow_scripts.training.run import train_run
    from workflow_scripts.training.state import StateFolder

    settings = spec.training.use_chosen(candidate)
    name = f"{candidate.learning_rate:g}-{candidate.batch_sentences}"
    folder = StateFolder(args.state / name, made_from)
    make_writable(folder.folder)
    label = f"{spec.variant_name} {name}"
    with folder.lock(), Reporter(label, candidate.max_steps, args.progress) as reporter:
        try:
            trained = replace(spec, training=settings)
            _, state = train_run(
                trained, args.data, args.init, device, folder, reporter, args.save_every
            )
        except StopRequested as stop:
            stop_training(stop, reporter)
        folder.remove()
    assert settings.selection, "a search without validation is refused when it is planned"
    tried = {
        key: getattr(candidate, key) for key in ("learning_rate", "batch_sentences", "max_steps")
    }
    best = {"best_step": state.best[CHOSEN]["step"], "value": state.best[CHOSEN]["value"]}
    return tried | best | {"metric": settings.selection.metric, "seconds": round(state.seconds, 1)}
