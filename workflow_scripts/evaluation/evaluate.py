"""Decode the splits of a trained run's task and score them."""

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workflow_scripts import provenance
from workflow_scripts.catalogue import digest, load_catalogue, parse_run, resolve_evaluation, resolve_run
from workflow_scripts.errors import UserError
from workflow_scripts.evaluation.scores import write_scores
from workflow_scripts.facts import of_evaluation
from workflow_scripts.files import read_json, replacing, sha256_file, sha256_files, write_json
from workflow_scripts.schema import Evaluation, checked
from workflow_scripts.training.outputs import check_replaceable

if TYPE_CHECKING:
    import pyarrow as pa
    import torch
    from torch import nn

    from workflow_scripts.training.progress import Reporter


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
    """Score one run. Identical source sentences are decoded once."""
    run = read_run(args.run_dir)
    settings = evaluation_settings(run, args)
    check_replaceable(args.out, {"predictions.parquet", "scores.csv", "evaluation.json"})
    started = provenance.now()

    import pyarrow as pa
    import pyarrow.parquet as pq

    from workflow_scripts.training.machine import choose_device, describe, prepare
    from workflow_scripts.training.prepared import read_table
    from workflow_scripts.training.progress import Reporter

    device, spec = choose_device(args.device), run["spec"]
    prepare(spec["seed"], spec["training"]["torch_threads"], device)
    model, vocabulary, _ = load_run(args.run_dir, args.data, device)
    groups = read_json(args.data / "dataset.json").get("subset_groups", {})
    run_columns = {key: spec[key] for key in ("task", "method", "variant", "seed", "protocol")}
    columns = ["source", "target", "subset", "source_ids", "target_ids"]
    splits = {split: read_table(args.data, split, columns) for split in settings.splits}
    total = sum(len(table["source"].unique()) for table in splits.values())
    predictions, scores = [], []
    with Reporter(run["run"], total, args.progress, unit="sentences") as reporter:
        for split, table in splits.items():
            reporter.stage(f"decode {split}")
            outputs = decode(model, table, vocabulary["target"], settings, device, reporter)
            correct = np.array(outputs) == table["target"].to_numpy()
            subsets = table["subset"].to_numpy()
            rows = [*share_scores("exact_match", correct, subsets, groups), *size_scores(table)]
            if settings.same_word:
                right = same_structure(outputs, table["target"].to_pylist(), settings.same_word)
                rows += share_scores("structure_match", right, subsets, groups)
            scores += [{**run_columns, "split": split, **row} for row in rows]
            content = {"row": np.arange(len(correct), dtype=np.int32), "subset": subsets, "prediction": outputs}
            predictions.append(pa.table({"split": [split] * len(correct), **content, "correct": correct}))
    with replacing(args.out) as out:
        out.mkdir()
        pq.write_table(pa.concat_tables(predictions), out / "predictions.parquet", compression="zstd")
        write_scores(out / "scores.csv", scores)
        content = settings.model_dump()
        made = {"facts": str(of_evaluation(content, spec)), "files": sha256_files(out), "settings": content}
        of_what = {"run": run["run"], "scale": run["scale"], "data_digest": run["data_digest"]}
        of_what["checkpoint_sha256"] = sha256_file(args.run_dir / "checkpoint/model.safetensors")
        times = {"started": started, "finished": provenance.now(), "cpu_seconds": provenance.cpu_seconds()}
        write_json(out / "evaluation.json", {**made, **of_what, **times, **describe(device)})


def read_run(run_dir: Path) -> dict[str, Any]:
    """run.json of a trained run. Raises UserError when it is missing or is something else."""
    run = read_json(run_dir / "run.json")
    if not isinstance(run, dict) or not {"run", "scale", "spec", "spec_digest", "data_digest"} <= run.keys():
        raise UserError(f"{run_dir / 'run.json'} is not what train writes; train the run again")
    return run


def evaluation_settings(run: dict[str, Any], args: argparse.Namespace) -> Evaluation:
    """Settings from `--settings`, or from the catalogue for the run's name and scale.

    Raises UserError when the run was trained with another spec than the catalogue now gives it.
    """
    if args.settings:
        return checked(Evaluation, read_json(args.settings), args.settings)
    if run["scale"] is None:
        raise UserError(
            f"{args.run_dir} was trained from a spec file without a scale; say how to score it: --settings FILE"
        )
    catalogue = load_catalogue()
    spec = resolve_run(catalogue, run["run"], run["scale"], run["spec"]["training"]["precision"])
    if digest(spec) != run["spec_digest"]:
        raise UserError(
            f"{args.run_dir / 'run.json'} is of another configuration: {first_difference(run['spec'], spec)}; "
            "train the run again"
        )
    return Evaluation(**resolve_evaluation(catalogue, parse_run(catalogue, run["run"]), run["scale"]))


def first_difference(before: Any, now: Any, key: str = "") -> str:
    """The first key at which two specs differ, with both values: `training.batch_tokens was 1024 and is 2048`."""
    if isinstance(before, dict) and isinstance(now, dict):
        for name in sorted(before.keys() | now.keys()):
            if before.get(name) != now.get(name):
                return first_difference(before.get(name), now.get(name), f"{key}.{name}".lstrip("."))
    return f"{key} was {before!r} and is {now!r}"


def load_run(
    run_dir: Path, data_dir: Path, device: "torch.device | str" = "cpu"
) -> tuple["nn.Module", dict[str, list[str]], dict[str, Any]]:
    """(model in eval mode, vocabulary by side, run.json) of a trained run.

    Raises UserError when a file is missing or broken, or when run.json, weights and data do not belong together.
    """
    from workflow_scripts.training.build import build_model
    from workflow_scripts.training.prepared import data_digest, read_vocabulary
    from workflow_scripts.training.state import load_weights, read_weights

    run = read_run(run_dir)
    if digest(run["spec"]) != run["spec_digest"]:
        raise UserError(
            f"{run_dir / 'run.json'} was changed after training: its spec has another digest; train the run again"
        )
    if data_digest(data_dir) != run["data_digest"]:
        raise UserError(f"{run_dir} was trained on other data than {data_dir}; train the run again")
    vocabulary = read_vocabulary(data_dir)
    weights = run_dir / "checkpoint/model.safetensors"
    model = build_model(run["spec"], vocabulary)
    load_weights(model, read_weights(weights), weights)
    return model.to(device).eval(), vocabulary, run


def decode(
    model: "nn.Module",
    table: "pa.Table",
    target_words: list[str],
    settings: Evaluation,
    device: "torch.device",
    reporter: "Reporter",
) -> list[str]:
    """The model's output, words joined by one space, for each row of a split (columns `source`, `source_ids`)."""
    import torch

    from workflow_scripts.models.decoding import beam, greedy
    from workflow_scripts.training.batches import EOS, PAD, bucketed_rows, sequences

    coded = table["source"].combine_chunks().dictionary_encode()
    which = coded.indices.to_numpy()
    first = np.unique(which, return_index=True)[1]
    sources = sequences(table["source_ids"].take(first))
    length = sources.length + 1
    outputs: list[str] = [""] * len(first)
    for rows in bucketed_rows(length, length, max(settings.batch_tokens, int(length.max()))):
        source = torch.from_numpy(sources.padded(rows)).to(device)
        if settings.beam == 1:
            ids = greedy(model, source, settings.max_length)
        else:
            ids = beam(model, source, settings.beam, settings.max_length)
        for row, sentence in zip(rows.tolist(), ids.tolist(), strict=True):
            end = sentence.index(EOS) if EOS in sentence else len(sentence)
            outputs[row] = " ".join(target_words[token] for token in sentence[:end] if token != PAD)
        reporter.advance(len(rows))
    return [outputs[index] for index in which]


def same_structure(outputs: list[str], targets: list[str], same_word: str) -> np.ndarray:
    """[N] bool: the output equals the target when all words that match `same_word` are taken for one word."""
    words = {word for sentence in {*outputs, *targets} for word in sentence.split(" ")}
    taken_for = {word: "" if re.fullmatch(same_word, word) else word for word in words}

    def structure(sentence: str) -> list[str]:
        return [taken_for[word] for word in sentence.split(" ")]

    return np.array([structure(output) == structure(target) for output, target in zip(outputs, targets, strict=True)])


def share_scores(
    metric: str, right: np.ndarray, subsets: np.ndarray, groups: dict[str, list[str]]
) -> list[dict[str, Any]]:
    """Share of `right` in percent over all rows, each subset that has a name, and each group of subsets that occurs.

    right [N] bool, subsets [N] str; `groups` maps a group's name to its subsets.
    """
    chosen = {"all": np.ones(len(right), bool)}
    chosen |= {name: subsets == name for name in sorted(set(subsets.tolist()) - {""})}
    chosen |= {group: np.isin(subsets, members) for group, members in sorted(groups.items())}
    return [
        {
            "subset": name,
            "metric": metric,
            "value": 100 * float(right[rows].mean()),
            "unit": "percent",
            "n": count,
        }
        for name, rows in chosen.items()
        if (count := int(rows.sum()))
    ]


def size_scores(table: "pa.Table") -> list[dict[str, Any]]:
    """How many examples a split has, and how many of its tokens, on both sides, training never showed."""
    from workflow_scripts.training.batches import UNK, sequences

    unknown = sum(int((sequences(table[side]).ids == UNK).sum()) for side in ("source_ids", "target_ids"))
    counts = {"examples": len(table), "out_of_vocabulary_tokens": unknown}
    return [
        {"subset": "all", "metric": name, "value": count, "unit": "count", "n": len(table)}
        for name, count in counts.items()
    ]
