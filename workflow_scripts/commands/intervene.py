"""Pool the words of a trained model's prompts (CAP), replace words by synonyms, and score the answers."""

import argparse
from pathlib import Path
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_file, hash_files, read_json, write_atomically, write_json
from workflow_scripts.common.output_folder import check_replaceable
from workflow_scripts.common.validation import parse_as
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.run_specs import resolve_evaluation, resolve_intervention
from workflow_scripts.config.runs import parse_run
from workflow_scripts.evaluation.scores import write_scores
from workflow_scripts.interventions.settings import Intervention
from workflow_scripts.provenance.fingerprints import fingerprint_intervention
from workflow_scripts.provenance.record import make_record
from workflow_scripts.tasks.trained_run import read_run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--run-dir", type=Path, required=True, metavar="DIR", help="what train wrote")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="the data that the run was trained on")
    parser.add_argument("--candidates", type=Path, required=True, metavar="DIR", help="what the words may become")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="gets scores.csv and answers.parquet, one row an answer"
    )
    parser.add_argument("--settings", type=Path, metavar="FILE", help="as JSON, instead of the catalogue's")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda", "mps"), default="auto")
    parser.add_argument("--progress", choices=("auto", "bar", "lines", "none"), default="auto")


def main(args: argparse.Namespace) -> None:
    """Write scores.csv, answers.parquet and intervention.json of one run."""
    run = read_run(args.run_dir)
    spec, settings = run["spec"], read_intervention_settings(run, args)
    if spec["kind"] != "prompt":
        raise UserError(f"{args.run_dir}: interventions are on prompts, and {spec['task']} is of kind {spec['kind']}")
    check_replaceable(args.out, {"scores.csv", "answers.parquet", "intervention.json", "record.json"})

    # torch takes more than a second to import, so wrong names are reported first.
    import pyarrow.parquet as pq

    from workflow_scripts.common.progress import Reporter
    from workflow_scripts.interventions.intervene import intervene
    from workflow_scripts.training.machine import choose_device, describe_device, set_seed_and_threads

    device = choose_device(args.device)
    set_seed_and_threads(spec["seed"], spec["training"]["torch_threads"], device)
    candidates, match = args.candidates / "candidates.parquet", find_match_rule(run)
    total = 1 + len(settings.rates) * len(settings.seeds)
    with Reporter(run["run"], total, args.progress, unit="interventions") as reporter:
        answers, scores = intervene(args.run_dir, args.data, settings, match, candidates, device, reporter)
    columns = {key: spec[key] for key in ("task", "method", "variant", "seed", "protocol")}
    columns |= {"split": settings.split, "subset": "all"}
    with write_atomically(args.out) as out:
        out.mkdir()
        pq.write_table(answers, out / "answers.parquet", compression="zstd")
        write_scores(out / "scores.csv", [columns | row for row in scores])
        content = {
            "run": run["run"],
            "scale": run["scale"],
            "spec": settings.model_dump(),
            "data_digest": run["data_digest"],
            "files": hash_files(out),
            "checkpoint_sha256": run["files"]["checkpoint/model.safetensors"],
            "candidates_sha256": hash_file(candidates),
        }
        write_json(out / "intervention.json", content)
        fingerprint, precision = fingerprint_intervention(content["spec"], spec), spec["training"]["precision"]
        made = make_record(fingerprint, run["data_digest"], spec["seed"], precision, describe_device(device))
        write_json(out / "record.json", made)


def read_intervention_settings(run: dict[str, Any], args: argparse.Namespace) -> Intervention:
    """Read the settings from `--settings`, or from the catalogue for the run's name and scale."""
    if args.settings:
        return parse_as(Intervention, read_json(args.settings), args.settings)
    if run["scale"] is None:
        raise UserError(f"{args.run_dir} was trained from a spec file without a scale; give --settings FILE")
    catalogue = load_catalogue()
    return Intervention(**resolve_intervention(catalogue, parse_run(catalogue, run["run"]), run["scale"]))


def find_match_rule(run: dict[str, Any]) -> str:
    """Return the rule of the run's evaluation by which an answer counts as right."""
    if run["scale"] is None:
        return "token"
    catalogue = load_catalogue()
    return resolve_evaluation(catalogue, parse_run(catalogue, run["run"]), run["scale"])["match"]
