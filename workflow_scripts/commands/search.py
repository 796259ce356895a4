"""Choose the learning rate and batch size of a variant: train each pair of its `search` with one
seed.

The best pair on the validation set is written to chosen.json, which the trainings of the variant
read. search.csv lists all pairs. An interrupted search keeps its finished pairs and resumes the
training of the current one.
"""

import argparse
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workflow_scripts.commands.inputs import get_run_job_spec
from workflow_scripts.commands.train import (
    ANY_DIGEST,
    add_training_arguments,
    check_folders,
    check_training_spec,
    hash_inputs,
    make_training_record,
    remove_other_states,
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
from workflow_scripts.common.result_folders import ScaleFolder, SearchFolder
from workflow_scripts.common.system import JobCosts, measure_costs
from workflow_scripts.provenance.record import add_output_digests
from workflow_scripts.provenance.spec_fingerprints import fingerprint_search
from workflow_scripts.tasks.run_spec import RunSpec
from workflow_scripts.training.settings import CHOSEN, Chosen

if TYPE_CHECKING:
    import torch


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_training_arguments(
        parser, "<task>/<method>/<variant>", "folder for search.csv and chosen.json"
    )


def main(args: argparse.Namespace) -> None:
    """Train every pair and write `--out`.

    After signal n it saves the state and exits with 128 + n.
    """
    job_spec = get_run_job_spec(args)
    spec = check_training_spec(job_spec, args)
    search = spec.search
    if not search or not search.learning_rate or spec.seed != search.seed:
        place = args.spec or spec.run
        raise UserError(f"{place}: key 'search' must have values and the seed of the spec")
    check_folders(args, job_spec, SearchFolder(args.out).names)

    # torch takes more than a second to import, so wrong names and keys are reported first.
    from workflow_scripts.training.machine import choose_device
    from workflow_scripts.training.search import COLUMNS, count_examples, find_best, list_candidates

    fingerprint = fingerprint_search(spec)
    device = choose_device(args.device)
    input_digests = hash_inputs(spec, args.data, args.init)
    made_from = input_digests | {"code_digest": fingerprint.code}
    state_file = args.state / "done.json"
    rows, costs_before = read_finished_pairs(state_file, made_from)
    examples = count_examples(spec, args.data, args.init) if search.epochs else None
    candidates = list_candidates(spec.training, search, examples)
    for candidate in candidates[len(rows) :]:
        try:
            rows.append(resume_candidate(args, spec, candidate, made_from, device))
        finally:  # what it has cost counts, also where a signal stops it
            costs = asdict(measure_costs(costs_before, is_on_gpu=device.type == "cuda"))
            write_json(state_file, {**made_from, "pairs": rows, "costs": costs})
    best = find_best([row["value"] for row in rows])
    with write_atomically(args.out) as out:
        folder = SearchFolder(out)
        out.mkdir()
        write_csv(folder.pairs, COLUMNS, rows)
        content = {
            "scale": job_spec.scale,
            "spec": spec.to_json(),
            **input_digests,
            "best": rows[best],
            "files": hash_files(out),
            "chosen": candidates[best].model_dump(),
        }
        write_json(folder.chosen, content)
        record = make_training_record(
            fingerprint, spec, input_digests["data_digest"], device, costs_before
        )
        write_json(folder.record, record)
        add_output_digests(folder.record, [folder.chosen])
    state_file.unlink()
    usual = ScaleFolder(Path()).search_state(spec.variant_key, ANY_DIGEST)
    remove_other_states(args.state, usual)


def read_finished_pairs(
    state_file: Path, made_from: dict[str, str]
) -> tuple[list[dict[str, Any]], JobCosts | None]:
    """Return the rows of search.csv that an interrupted search has finished, and what they cost.

    Raises UserError if it was a search with other inputs or other code than `made_from`.
    """
    if not state_file.exists():
        return [], None
    state = read_json(state_file)
    for name, value in made_from.items():
        if state[name] != value:
            input_name = name.removesuffix("_digest")
            raise UserError(
                f"{state_file} was made with another {input_name}; "
                f"delete {state_file.parent} to start again"
            )
    return state["pairs"], JobCosts(**state["costs"])


def resume_candidate(
    args: argparse.Namespace,
    spec: RunSpec,
    candidate: Chosen,
    made_from: dict[str, str],
    device: "torch.device",
) -> dict[str, Any]:
    """Train one pair, or resume its training, and return its row of search.csv."""
    from workflow_scripts.common.progress import Reporter
    from workflow_scripts.training.run import train_run
    from workflow_scripts.training.state import StateFolder
    from workflow_scripts.training.stopping import StopRequested

    settings = spec.training.use_chosen(candidate)
    name = f"{candidate.learning_rate:g}-{candidate.batch_sentences}"
    folder = StateFolder(args.state / name, made_from)
    make_writable(folder.folder)
    label = f"{spec.variant_key} {name}"
    with folder.lock(), Reporter(label, candidate.max_steps, args.progress) as reporter:
        try:
            trained = replace(spec, training=settings)
            _, state = train_run(
                trained, args.data, args.init, device, folder, reporter, args.save_every
            )
        except StopRequested as stop:
            stop_training(stop, reporter)
        folder.remove()
    assert settings.selection, "a search without validation is refused when it is resolved"
    best = state.best[CHOSEN]
    return {
        "learning_rate": candidate.learning_rate,
        "batch_sentences": candidate.batch_sentences,
        "max_steps": candidate.max_steps,
        "best_step": best.step,
        "value": best.value,
        "metric": settings.selection.metric,
        "seconds": round(state.seconds, 1),
    }
