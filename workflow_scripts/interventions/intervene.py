"""Pool the words of a trained model's prompts (CAP), replace some by synonyms, and score what it then answers."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workflow_scripts import provenance
from workflow_scripts.catalogue.loading import load_catalogue
from workflow_scripts.catalogue.run_specs import resolve_evaluation, resolve_intervention
from workflow_scripts.catalogue.runs import parse_run
from workflow_scripts.checking import checked
from workflow_scripts.errors import UserError
from workflow_scripts.evaluation.scores import write_scores
from workflow_scripts.evaluation.trained import read_run
from workflow_scripts.facts import of_intervention
from workflow_scripts.files import read_json, replacing, sha256_file, sha256_files, write_json
from workflow_scripts.schema import Intervention
from workflow_scripts.training.outputs import check_replaceable

if TYPE_CHECKING:
    import pyarrow as pa

    from workflow_scripts.interventions.answers import Subject
    from workflow_scripts.training.progress import Reporter


# By readout, the names of the share of right answers, as in an evaluation, and of what is derived from it.
METRIC = {"vocabulary": "exact_match", "labels": "constrained"}
PREFIX = {"vocabulary": "", "labels": "constrained_"}


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
    spec, settings = run["spec"], intervention_settings(run, args)
    if spec["kind"] != "prompt":
        raise UserError(f"{args.run_dir}: interventions are on prompts, and {spec['task']} is of kind {spec['kind']}")
    check_replaceable(args.out, {"scores.csv", "answers.parquet", "intervention.json"})

    import pyarrow as pa
    import pyarrow.parquet as pq

    from workflow_scripts.interventions.answers import Subject
    from workflow_scripts.training.machine import choose_device, describe, prepare
    from workflow_scripts.training.progress import Reporter

    device = choose_device(args.device)
    prepare(spec["seed"], spec["training"]["torch_threads"], device)
    subject = Subject.read(args.run_dir, args.data, settings.split, match_of(run, args), device)
    total = 1 + len(settings.rates) * len(settings.seeds)
    with Reporter(run["run"], total, args.progress, unit="interventions") as reporter:
        reporter.stage("pool words")
        tables, scores = pooled(subject, settings)
        reporter.advance()
        reporter.stage("replace words")
        more_tables, more_scores = replaced(subject, settings, args.candidates / "candidates.parquet", reporter)
    columns = {key: spec[key] for key in ("task", "method", "variant", "seed", "protocol")}
    columns |= {"split": settings.split, "subset": "all"}
    with replacing(args.out) as out:
        out.mkdir()
        pq.write_table(pa.concat_tables(tables + more_tables), out / "answers.parquet", compression="zstd")
        write_scores(out / "scores.csv", [columns | row for row in scores + more_scores])
        content = settings.model_dump()
        of_what = {"run": run["run"], "scale": run["scale"], "files": sha256_files(out)}
        of_what["checkpoint_sha256"] = sha256_file(args.run_dir / "checkpoint/model.safetensors")
        of_what["candidates_sha256"] = sha256_file(args.candidates / "candidates.parquet")
        facts, precision = of_intervention(content, spec), spec["training"]["precision"]
        made = provenance.record(facts, run["data_digest"], spec["seed"], precision, describe(device))
        write_json(out / "intervention.json", made | of_what)


def intervention_settings(run: dict[str, Any], args: argparse.Namespace) -> Intervention:
    """Settings from `--settings`, or from the catalogue for the run's name and scale."""
    if args.settings:
        return checked(Intervention, read_json(args.settings), args.settings)
    if run["scale"] is None:
        raise UserError(f"{args.run_dir} was trained from a spec file without a scale; give --settings FILE")
    catalogue = load_catalogue()
    return Intervention(**resolve_intervention(catalogue, parse_run(catalogue, run["run"]), run["scale"]))


def match_of(run: dict[str, Any], args: argparse.Namespace) -> str:
    """When an answer counts as right: as in the run's evaluation."""
    if run["scale"] is None:
        return "token"
    catalogue = load_catalogue()
    return resolve_evaluation(catalogue, parse_run(catalogue, run["run"]), run["scale"])["match"]


def chosen_blocks(count: int, wanted: int | str | list[int]) -> list[int]:
    """The blocks before which CAP pools: all but the first, or `wanted` of them from block 1 to the last, evenly, or
    those of a list, of 0 to `count` - 1."""
    if isinstance(wanted, list):
        return wanted
    if wanted == "all" or wanted >= count - 1:
        return list(range(1, count))
    return sorted({round(1 + k * (count - 2) / (wanted - 1)) for k in range(wanted)}) if wanted > 1 else [1]


def share(metric: str, right: np.ndarray, rows: np.ndarray, **where: Any) -> list[dict[str, Any]]:
    """The score row of the share (percent) of `right` [N] among `rows` [N] bool; none where `rows` is empty."""
    count = int(rows.sum())
    value = {"metric": metric, "unit": "percent", "n": count, **where}
    return [value | {"value": 100 * float(right[rows].mean())}] if count else []


def pooled(subject: "Subject", settings: Intervention) -> tuple[list["pa.Table"], list[dict[str, Any]]]:
    """CAP: (answers, score rows) by block, pooling, readout and item set."""
    from workflow_scripts.interventions.cap import cap_predictions
    from workflow_scripts.objectives.hidden_states import blocks

    layers = chosen_blocks(len(blocks(subject.model)), settings.blocks)
    order, batches = subject.batches(subject.prompts)
    found = cap_predictions(
        subject.model, batches, layers, settings.poolings, subject.labels, settings.bos_in_first_word
    )
    tables, scores = [], []
    for (layer, pooling, readout), ids in found.pooled.items():
        right = subject.right(order, ids.numpy(), readout)
        where = {"intervention": "cap", "layer": layer, "pooling": pooling, "readout": readout}
        everything = np.ones(len(right), bool)
        for item_set, rows in (("all", everything), ("own_correct", subject.correct[readout])):
            scores += share(METRIC[readout], right, rows, item_set=item_set, **where)
        tables.append(subject.table(right, **where))
    return tables, scores


def replaced(
    subject: "Subject", settings: Intervention, candidates: Path, reporter: "Reporter"
) -> tuple[list["pa.Table"], list[dict[str, Any]]]:
    """Synonyms: (answers, score rows) by rate and seed. `consistency` (ConsistSyn, Eqn 12) is the share of the items
    that were right before which still are; `cv` its deviation over its mean across seeds (Eqn 13), `cv_low` to
    `cv_high` its 95% interval, without an upper end where the seeds set none."""
    from workflow_scripts.interventions.candidates import candidates_of, read
    from workflow_scripts.interventions.synonyms import perturb
    from workflow_scripts.interventions.variation import cv_scores

    table = candidates_of(read(candidates))
    labels = None if settings.may_be_label else subject.answers
    tables, scores = [], []
    for rate in settings.rates:
        consistent: dict[str, list[float]] = {readout: [] for readout in subject.correct}
        for seed in settings.seeds:
            texts, shares = perturb(subject.contents, table, rate, seed, items=subject.items, labels=labels)
            where = {"intervention": "synonyms", "rate": rate, "intervention_seed": seed}
            everything = np.ones(len(texts), bool)
            scores.append({"metric": "realised_rate", "unit": "percent", "n": len(texts), "item_set": "all", **where})
            scores[-1]["value"] = 100 * float(np.mean(shares))
            for readout, right in subject.answer(texts).items():
                before = subject.correct[readout]
                scores += share(METRIC[readout], right, everything, item_set="all", readout=readout, **where)
                rows = share(
                    PREFIX[readout] + "consistency", right, before, item_set="own_correct", readout=readout, **where
                )
                consistent[readout] += [row["value"] for row in rows]
                scores += rows
                tables.append(subject.table(right, readout=readout, **where))
            reporter.advance()
        for readout, values in consistent.items():
            where = {"intervention": "synonyms", "rate": rate, "readout": readout, "item_set": "own_correct"}
            scores += cv_scores(PREFIX[readout], values, **where)
    return tables, scores
