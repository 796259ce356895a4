"""Choose the learning rate and batch size of a variant: train each pair of its `search` with one seed.

The best on the validation set is written to chosen.json, from which the trainings of the variant take it; search.csv
lists all. A search that was stopped goes on where it was: pairs that are done are kept, and that at work resumes.
"""

import argparse
import csv
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workflow_scripts.commands.train import (
    add_common_arguments,
    check_data,
    choose_state_folder,
    hash_inputs,
    read_spec,
)
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_files, read_json, write_atomically, write_json
from workflow_scripts.common.output_folder import check_replaceable, make_writable
from workflow_scripts.common.validation import parse_as
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.run_specs import searched
from workflow_scripts.config.runs import parse_run
from workflow_scripts.provenance.fingerprints import fingerprint_search
from workflow_scripts.provenance.record import make_record
from workflow_scripts.tasks.settings import Search, Training

if TYPE_CHECKING:
    import torch

OUTPUTS = {"search.csv", "chosen.json", "record.json"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--run", metavar="ID", help="<task>/<method>/<variant> of the catalogue")
    what.add_argument("--spec", type=Path, metavar="FILE", help="a resolved spec as JSON, of the search's seed")
    add_common_arguments(parser, "gets search.csv, chosen.json")


def main(args: argparse.Namespace) -> None:
    """Train every pair and write `--out`. After signal n it saves the state and exits with 128 + n."""
    if args.run and args.scale:
        if args.run.strip("/").count("/") != 2:
            raise UserError(f"run '{args.run}' is not of the form <task>/<method>/<variant>: a search has its own seed")
        catalogue = load_catalogue()
        run = searched(catalogue, parse_run(catalogue, f"{args.run}/seed-0"), args.scale, args.precision)
        if run is None:
            raise UserError(f"{args.run} has nothing to search at scale {args.scale}; its settings have no search")
        args.run = str(run)
    spec, settings = read_spec(args)
    search = parse_as(Search, spec.get("search", {}), args.run or args.spec, "search")
    if not search.learning_rate or spec["seed"] != search.seed:
        raise UserError(f"{args.run or args.spec}: key 'search' must have values, and be of the spec's seed")
    args.state = args.state or choose_state_folder(args.out)
    check_replaceable(args.out, OUTPUTS)
    make_writable(args.state)
    check_data(args.data, spec["task"], args.scale if args.run else None)

    # torch takes more than a second to import, so wrong names and keys are reported first.
    from workflow_scripts.training import machine
    from workflow_scripts.training.search import COLUMNS, find_best, list_candidates

    fingerprint, device = fingerprint_search(spec), machine.choose_device(args.device)
    origin = hash_inputs(spec, args.data, args.init)
    made_from, file = origin | {"code_digest": fingerprint.code}, args.state / "done.json"
    done = read_json(file) if file.exists() else {**made_from, "pairs": []}
    for name, value in made_from.items():
        if done[name] != value:
            what = name.removesuffix("_digest")
            raise UserError(f"{file} was made with another {what}; delete {args.state} to start anew")
    candidates = list_candidates(spec, settings, search, args.data)
    for candidate in candidates[len(done["pairs"]) :]:
        done["pairs"].append(train_candidate(args, spec, candidate, made_from, device))
        write_json(file, done)
    best = find_best(done["pairs"])
    keys = ("learning_rate", "batch_sentences", "max_steps", "warmup_steps", "validate_every")
    with write_atomically(args.out) as out:
        out.mkdir()
        with open(out / "search.csv", "w", newline="") as stream:
            writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(done["pairs"])
        content = {"scale": args.scale, "spec": spec, **origin, "best": done["pairs"][best], "files": hash_files(out)}
        content["chosen"] = {key: getattr(candidates[best], key) for key in keys}
        write_json(out / "chosen.json", content)
        made = make_record(
            fingerprint,
            origin["data_digest"],
            spec["seed"],
            spec["training"]["precision"],
            machine.describe_device(device),
        )
        write_json(out / "record.json", made)
    file.unlink()


def train_candidate(
    args: argparse.Namespace, spec: dict, settings: Training, made_from: dict[str, str], device: "torch.device"
) -> dict[str, Any]:
    """Train one pair, or resume its training, and return its row of search.csv."""
    from workflow_scripts.common.progress import Reporter
    from workflow_scripts.training.loop import StopRequested
    from workflow_scripts.training.search import train_candidate
    from workflow_scripts.training.state import StateFolder

    name = f"{settings.learning_rate:g}-{settings.batch_sentences}"
    folder = StateFolder(args.state / name, made_from)
    make_writable(folder.folder)
    label = "{task}/{method}/{variant} {name}".format(**spec, name=name)
    with folder.lock(), Reporter(label, settings.max_steps, args.progress) as reporter:
        try:
            row = train_candidate(spec, settings, args.data, args.init, device, folder, reporter, args.save_every)
        except StopRequested as stop:
            reporter.print_line(f"stopped at step {stop.step}, state saved; the same command goes on from there")
            sys.exit(128 + stop.number)
        folder.remove()
    return row
