"""Say for each job that would run why it would: which key, file or function changed, from what to what."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workflow_scripts.catalogue.loading import Catalogue, load_catalogue, load_config
from workflow_scripts.catalogue.merging import merged
from workflow_scripts.catalogue.runs import parse_run
from workflow_scripts.checking import read_yaml
from workflow_scripts.errors import UserError
from workflow_scripts.facts import SHORT, of_job, recall
from workflow_scripts.files import read_json, sha256_file
from workflow_scripts.planning.agreement import by_other_code
from workflow_scripts.planning.changes import fact_changes, few
from workflow_scripts.planning.records import jobs_of_dry_run, read_overrides, read_record, record_path
from workflow_scripts.planning.unfinished import unfinished
from workflow_scripts.planning.versions import RUNS, other_versions
from workflow_scripts.schema import Config

STAGES = (
    *("fetch", "fetch_model", "prepare", "prepare_large", "candidates", "search", "train", "evaluate", "intervene"),
    *("analyse", "table", "figure", "claims", "record_config"),
)
SOURCES = "workflow_scripts/data/sources.yaml"
KEEP = (
    "To keep what descends from data that come out the same: .venv/bin/python -m workflow_scripts adopt --remake-data"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="files; none: all that config.yaml asks for")
    parser.add_argument("--config", nargs="+", default=[], metavar="KEY=VALUE", help="as for ./reproduce")


def main(args: argparse.Namespace) -> None:
    """Print one sentence for each job of a dry run, those with a reason of their own first."""
    catalogue = load_catalogue()
    config = load_config(read_yaml(Path("config.yaml")) | read_overrides(args.config))
    options = [*(["--config", *args.config] if args.config else []), "--", *args.targets]
    again = unfinished(options, half_made=bool(args.targets))
    jobs = jobs_of_dry_run(*(["--forcerun", *again] if again else []), *options)
    jobs.sort(key=lambda job: (STAGES.index(job["rule"]), name(job)))
    made_again = {file for job in jobs for file in job["output"]}
    own, following = [], []
    for job in jobs:
        reasons = list(own_reasons(catalogue, config, job, made_again, again))
        if reasons:
            own.append(f"{name(job)}: {'; '.join(reasons)}")
        else:
            files = [file for file in job["input"] if file in made_again]
            following.append(f"{name(job)}: " + (f"reads {few(files, ', ')}, made again" if files else job["reason"]))
    for sentence in own + following:
        print(sentence)
    count = {0: "Nothing", 1: "1 job"}.get(len(jobs), f"{len(jobs)} jobs")
    print(f"{count} would run" + (f", {len(own)} of them for a reason of their own" if following else ""))
    if following and any(by_other_code(Path(job["output"][0])) for job in jobs if job["rule"].startswith("prepare")):
        print(KEEP)
    if note := other_versions(Path("results").glob(f"{config.scale}/{RUNS}")):
        print(note)


def name(job: dict[str, Any]) -> str:
    """Rule and wildcards: `train scan-jump-x2/transformer/default/seed-1`."""
    wildcards = [value for key, value in job["wildcards"].items() if key != "scale"]
    return f"{job['rule']} {'/'.join(wildcards)}".strip()


def own_reasons(
    catalogue: Catalogue, config: Config, job: dict[str, Any], made_again: set[str], again: list[str]
) -> Iterator[str]:
    """What makes a job stale, but for inputs that another job of the plan makes again."""
    record = read_record(job["output"][0])
    missing = [file for file in job["output"] if not Path(file).exists()]
    if record is None:
        yield "was not made yet" if missing else "Snakemake has no record of how it was made"
        return
    if new := [file for file in job["output"] if not record_path(file).exists()]:
        yield f"did not make {few(new, ', ')} before"
    elif job["output"][0] in again:
        yield "was begun again, and failed"
    elif missing:
        yield f"{few(missing, ', ')} {'is' if len(missing) == 1 else 'are'} gone"
    before = next(filter(None, (SHORT.match(param.strip("'\"")) for param in record["params"])), None)
    now = of_job(catalogue, config, job["rule"], job["wildcards"])
    if now and before and str(now) != before[0]:
        old = read_spec(job["output"]) if job["rule"] == "train" else recall(before["given"])
        yield from fact_changes(before[0], old, now, lambda key: set_in(catalogue, job, key))
    elif now and not before:
        yield "was made by an older workflow, which recorded less"
    elif record["shellcmd"] != job["command"] and set(record["input"]) == set(job["input"]):
        yield f"its command was `{record['shellcmd']}` and is `{job['command']}`"
    if added := sorted(set(job["input"]) - set(record["input"])):
        yield f"reads {few(added, ', ')} too"
    if removed := sorted(set(record["input"]) - set(job["input"])):
        yield f"reads {few(removed, ', ')} no more"
    for file, checksum in sorted(record["input_checksums"].items()):
        kept = file in job["input"] and file not in made_again and Path(file).is_file()
        if kept and checksum != (actual := f"sha256:{sha256_file(file)}"):
            yield f"{file} has changed: {checksum} was read, it has {actual}"


def read_spec(outputs: list[str]) -> Any:
    """The spec in the run.json among the outputs of a training; None if there is none to be read."""
    try:
        return read_json(next(file for file in outputs if file.endswith("run.json")))["spec"]
    except (UserError, KeyError):
        return None


def set_in(catalogue: Catalogue, job: dict[str, Any], key: str) -> str:
    """The file where a value is set, and the key there, in brackets; empty where that is not known."""
    rule, wildcards = job["rule"], job["wildcards"]
    section, _, entry = key.partition(".")
    place = ""
    if rule in ("search", "train") and section in ("model", "objective", "training"):
        run = parse_run(catalogue, "{task}/{method}/{variant}/{seed}".format(**{"seed": "seed-0", **wildcards}))
        found = merged(catalogue, run, wildcards["scale"])[section].get(entry)
        place = found[1] if found else ""
    elif rule == "fetch":
        place = f"{SOURCES} datasets.{wildcards['source'].replace('/', '.files.', 1)}.{key}"
    elif rule == "fetch_model":
        place = f"{SOURCES} hugging_face.{wildcards['model']}.{key}"
    elif rule in ("table", "figure", "analyse"):
        name = wildcards.get("display") or wildcards["analysis"]
        file = {"caption": f"captions/{name}.rst", "published": "published.csv"}.get(section, "displays.yaml")
        place = f"papers/{wildcards['paper']}/{file}"
    elif rule == "claims" and section in ("claims", "displays", "published"):
        ending = "csv" if section == "published" else "yaml"
        place = f"papers/{entry.split('.')[0]}/{section}.{ending}"
    return f" ({place})" if place else ""
