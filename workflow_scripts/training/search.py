"""Choose the learning rate and the batch size of a variant: each pair of its spec's `search` is trained with one seed.

The best on the validation set is written to chosen.json, from which the trainings of the variant take it; search.csv
lists all. A search that was stopped goes on where it was: pairs that are done are kept, and that at work resumes.
"""

import argparse
import csv
import importlib
import math
import sys
from pathlib import Path
from typing import Any

from workflow_scripts import provenance
from workflow_scripts.canonical import digest
from workflow_scripts.catalogue.loading import load_catalogue
from workflow_scripts.catalogue.run_specs import searched
from workflow_scripts.catalogue.runs import parse_run
from workflow_scripts.checking import checked
from workflow_scripts.errors import UserError
from workflow_scripts.facts import of_search
from workflow_scripts.files import read_json, replacing, sha256_files, write_json
from workflow_scripts.schema import Search, Training
from workflow_scripts.training.outputs import check_replaceable, make_writable
from workflow_scripts.training.train import add_common_arguments, check_data, default_state, read_spec, weights_digest

OUTPUTS = {"search.csv", "chosen.json"}
COLUMNS = ("learning_rate", "batch_sentences", "max_steps", "best_step", "metric", "value", "seconds")
VALIDATIONS = 2  # in a pass over the training set, where the search counts these


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--run", metavar="ID", help="<task>/<method>/<variant> of the catalogue")
    what.add_argument("--spec", type=Path, metavar="FILE", help="a resolved spec as JSON, of the search's seed")
    add_common_arguments(parser, "gets search.csv, chosen.json")


def main(args: argparse.Namespace) -> None:
    """Train every pair, and write `--out`. Exits with 128 + n after signal n, when the state is saved."""
    if args.run and args.scale:
        if args.run.strip("/").count("/") != 2:
            raise UserError(f"run '{args.run}' is not of the form <task>/<method>/<variant>: a search has its own seed")
        catalogue = load_catalogue()
        run = searched(catalogue, parse_run(catalogue, f"{args.run}/seed-0"), args.scale, args.precision)
        if run is None:
            raise UserError(f"{args.run} has nothing to search at scale {args.scale}; its settings have no search")
        args.run = str(run)
    spec, settings = read_spec(args)
    search = checked(Search, spec.get("search", {}), args.run or args.spec, "search")
    if not search.learning_rate or spec["seed"] != search.seed:
        raise UserError(f"{args.run or args.spec}: key 'search' must have values, and be of the spec's seed")
    if settings.gpus > 1:
        raise UserError(f"{args.run or args.spec}: a search works on one device; set training.gpus to 1")
    args.state = args.state or default_state(args.out)
    check_replaceable(args.out, OUTPUTS)
    make_writable(args.state)
    work(args, spec, settings, search)


def work(args: argparse.Namespace, spec: dict, settings: Training, search: Search) -> None:
    """All pairs, those first that another process has not done before."""
    from workflow_scripts.training import machine
    from workflow_scripts.training.prepared import data_digest

    check_data(args.data, spec["task"], args.scale if args.run else None)
    facts = of_search(spec)
    identity = {"spec_digest": digest(spec), "data_digest": data_digest(args.data), "code_digest": facts.code}
    if args.init:
        identity["init_digest"] = weights_digest(args.init)
    device = machine.choose_device(args.device, 0, 1)
    file = args.state / "done.json"
    done = read_json(file) if file.exists() else {**identity, "pairs": []}
    for name, value in identity.items():
        if done[name] != value:
            what = name.removesuffix("_digest")
            raise UserError(f"{file} was made with another {what}; delete {args.state} to start anew")
    candidates = pairs(spec, settings, search, args.data)
    for candidate in candidates[len(done["pairs"]) :]:
        done["pairs"].append(train(args, spec, candidate, identity, device))
        write_json(file, done)
    best = max(range(len(candidates)), key=lambda position: done["pairs"][position]["value"])  # the first of equal ones
    keys = ("learning_rate", "batch_sentences", "max_steps", "warmup_steps", "validate_every")
    with replacing(args.out) as out:
        out.mkdir()
        with open(out / "search.csv", "w", newline="") as stream:
            writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(done["pairs"])
        made = provenance.record(
            facts, identity["data_digest"], spec["seed"], spec["training"]["precision"], machine.describe(device)
        )
        made |= {"chosen": {key: getattr(candidates[best], key) for key in keys}, "best": done["pairs"][best]}
        write_json(out / "chosen.json", {**made, **identity, "scale": args.scale, "files": sha256_files(out)})
    file.unlink()


def pairs(spec: dict, settings: Training, search: Search, data: Path) -> list[Training]:
    """The settings of each pair's training. Where the search counts epochs, steps follow from the rows of the training
    set; the warm-up has the same share of them for every pair."""
    found = []
    for batch in search.batch_sentences:
        for rate in search.learning_rate:
            changes: dict[str, Any] = {"learning_rate": rate, "batch_sentences": batch}
            if search.epochs:
                rows = read_json(data / "dataset.json")["splits"]["train"]["rows"]
                steps = math.ceil(search.epochs * rows / batch)
                changes["max_steps"] = steps
                changes["warmup_steps"] = round(steps * settings.warmup_steps / settings.max_steps)
                changes["validate_every"] = max(1, math.ceil(rows / batch / VALIDATIONS))
            found.append(settings.model_copy(update=changes))
    return found


def train(args: argparse.Namespace, spec: dict, settings: Training, identity: dict[str, str], device) -> dict[str, Any]:
    """One pair's training: its row of search.csv."""
    import torch
    from accelerate import Accelerator

    from workflow_scripts.training import loop, machine
    from workflow_scripts.training.progress import Reporter
    from workflow_scripts.training.state import StateFolder

    name = f"{settings.learning_rate:g}-{settings.batch_sentences}"
    machine.prepare(spec["seed"], settings.torch_threads, device)
    maker = importlib.import_module(f"workflow_scripts.training.{spec['kind']}")
    task = maker.make_task(spec, settings, args.data, args.init, device)
    folder = StateFolder(args.state / name, identity)
    make_writable(folder.folder)
    label = "{task}/{method}/{variant}".format(**spec)
    with folder.locked(), Reporter(f"{label} {name}", settings.max_steps, args.progress) as reporter:
        bf16 = spec["training"]["precision"] == "bf16"
        accelerator = Accelerator(cpu=device.type == "cpu", mixed_precision="bf16" if bf16 else "no")
        try:
            state = loop.train(task, settings, spec["seed"], accelerator, folder, reporter, args.save_every)
        except loop.StopRequested as stop:
            reporter.line(f"stopped at step {stop.step}, state saved; the same command goes on from there")
            sys.exit(128 + stop.number)
        except torch.OutOfMemoryError as error:
            raise UserError(f"{label} {name}: the GPU's memory is full; lower training.batch_tokens") from error
        folder.check_owner()
        folder.remove()
    row = {"learning_rate": settings.learning_rate, "batch_sentences": settings.batch_sentences}
    row |= {"max_steps": settings.max_steps, "best_step": state.best_step, "seconds": round(state.seconds, 1)}
    return row | {"metric": settings.validation["metric"], "value": state.best_value}
