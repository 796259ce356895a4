"""Runs with random weights in the files of training and evaluation, and data that they could have
been trained on.
"""

import importlib
from itertools import product
from pathlib import Path

import pandas
import torch
from safetensors.torch import save_file

from tests.config.as_json import resolve_run
from tests.data.preparing import prepare_data, write_data
from tests.models.sections import parse_model
from workflow_scripts.analyses.trained_runs import TrainedRun
from workflow_scripts.common.files import digest, hash_files, write_json
from workflow_scripts.config.catalogue import parse_run
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.data.prepared import Seq2SeqDataset, digest_data, read_vocabularies
from workflow_scripts.data.splits import Example
from workflow_scripts.evaluation.scores import Score, write_scores
from workflow_scripts.models.weights import list_weights
from workflow_scripts.tasks.seq2seq.checkpoint import build_model, write_config
from workflow_scripts.training.history import write_history

ROOT = Path(__file__).parents[2]
VERBS = ("walk", "look", "run", "walk1", "look1", "run1")
PATHS = ("", "left", "right", "around left", "around right", "opposite left")
PATHS += ("twice", "thrice", "left twice", "and walk")


def scan_sentences(verbs: tuple[str, ...], paths: tuple[str, ...] = PATHS) -> list[Example]:
    """Commands of SCAN; what they mean is of no concern to an analysis of the encoder."""
    return [Example(" ".join(filter(None, pair)), "I_WALK") for pair in product(verbs, paths)]


def add_data(results: Path, task: str, spec: dict) -> Path:
    """Write the data of a task: a few commands of SCAN, or generated data in the format of another
    data set.
    """
    folder = results / "data" / task
    if not folder.exists():
        if spec["options"]["from"] == "stand_in":
            prepared = prepare_data(importlib.import_module(spec["prepare"]), spec["options"], {})
        else:
            train = scan_sentences(VERBS) + scan_sentences(
                ("jump", "jump1", "after", "turn left"), ("",)
            )
            splits = {
                "train": train,
                "valid": train[:9],
                "test": scan_sentences(("jump", "jump1", "walk"), PATHS[1:]),
            }
            # a word that training never showed
            splits["test"] += scan_sentences(("jump9",), ("left", "right"))
            prepared = Seq2SeqDataset(splits, [], protocol="reduced")
        write_data(prepared, spec | {"protocol": prepared.protocol}, folder)
    return folder


def name_run(
    folder: Path,
    task: str,
    method: str,
    variant: str = "default",
    seed: int = 1,
    protocol: str = "reduced",
    **more,
) -> TrainedRun:
    """A run in a new folder, without files."""
    own = folder / f"{task}-{method}-{variant}-{seed}"
    return TrainedRun(task, method, variant, seed, protocol, own, folder, **more)


def add_scores(run: TrainedRun, rows: list[dict], file: str = "eval/scores.csv") -> TrainedRun:
    """Write scores of a run, each with its metric and value."""
    (run.folder / file).parent.mkdir(parents=True)
    where = {**run.columns, "protocol": run.protocol, "unit": "percent", "n": 9}
    write_scores(run.folder / file, [Score(**where | row) for row in rows])
    return run


def add_answers(
    folder: Path,
    rows: list[dict],
    task: str = "idm",
    method: str = "gpt2-small",
    variant: str = "ft",
    seed: int = 1,
) -> TrainedRun:
    """Write rows of answers under interventions; the run has no other files."""
    run = name_run(folder, task, method, variant, seed)
    (run.folder / "interventions").mkdir(parents=True)
    pandas.DataFrame(rows).astype({"layer": "Int32"}).to_parquet(
        run.folder / "interventions/answers.parquet"
    )
    return run


def add_run(results: Path, run_id: str, accuracy: float = 12.5) -> TrainedRun:
    """What train and evaluate would write for a run of the demo; the weights are random."""
    run = parse_run(load_catalogue(ROOT), run_id)
    spec = resolve_run(load_catalogue(ROOT), run, "demo")
    data = add_data(results, run.task, spec["data"])
    torch.manual_seed(run.seed)
    vocabulary = read_vocabularies(data)
    model = build_model(parse_model(spec["model"]), vocabulary)
    folder = results / "runs" / run_id
    (folder / "checkpoint").mkdir(parents=True)
    (folder / "eval").mkdir()
    save_file(list_weights(model), folder / "checkpoint/model.safetensors")
    write_config(folder / "checkpoint", parse_model(spec["model"]), vocabulary)
    facts = {
        "run": run_id,
        "scale": "demo",
        "spec": spec,
        "spec_digest": digest(spec),
        "protocol": spec["protocol"],
        "steps": 100,
        "parameters": sum(weights.numel() for weights in list_weights(model).values()),
    }
    write_json(
        folder / "run.json", facts | {"data_digest": digest_data(data), "files": hash_files(folder)}
    )
    names = {"task": run.task, "method": run.method, "variant": run.variant, "seed": run.seed}
    score = Score("exact_match", accuracy, "percent", 100, split="test", protocol=spec["protocol"])
    write_scores(folder / "eval/scores.csv", [score._replace(**names)])
    write_history(
        folder / "training.csv",
        [(s, "valid_exact_match", accuracy * s / 100) for s in (20, 40, 60, 80, 100)],
    )
    return TrainedRun(**names, protocol=spec["protocol"], folder=folder, data=data)
