"""Take over results that came without Snakemake's records: copied from a cluster, unpacked, or of a killed workflow.

Snakemake would take them as current whatever they are. Here each is held against what would be made now: what agrees is
recorded as current, and what does not is moved to results/<scale>/not-adopted/ and so made again. Where runs came
without their prepared data, the data are made first: run.json has their digest, and equal sources give equal bytes.
"""

import argparse
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from workflow_scripts.planning.records import environment, is_recorded, snakemake
from workflow_scripts.planning.versions import RUNS, other_versions

if TYPE_CHECKING:
    from workflow_scripts.facts import Facts

# By rule, in the order in which data flow: the manifest in the folder of a result.
MANIFESTS = {
    "prepare": "data/*/dataset.json",
    "search": "search/*/*/*/chosen.json",
    "train": "runs/*/*/*/*/run.json",
    "evaluate": "runs/*/*/*/*/eval/evaluation.json",
    "candidates": "candidates/*/candidates.json",
    "intervene": "runs/*/*/*/*/interventions/intervention.json",
}
# Made again from the others in little time.
DERIVED = ("analyses/*/*/analysis.json", "tables/*/*.*", "figures/*/*.*", "claims.*", "overview.*", "config.json")

NO_DATA = "the data that it was made from are missing"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")


def main(args: argparse.Namespace) -> None:
    """Adopt or move aside. Says nothing when every result has a record."""
    folders = [folder for folder in sorted(Path("results").glob("*/")) if folder.name not in ("downloads", "reference")]
    adopted: set[Path] = set()
    count = 0
    for rule, pattern in MANIFESTS.items():
        if rule in ("search", "train"):
            prepare(without_data(folders, adopted, rule), args.dry_run)
        agreeing = defaultdict(list)
        for file in unrecorded(folders, pattern):
            objection = judge(rule, file, adopted)
            if objection == NO_DATA and args.dry_run:
                adopted.add(file)  # the data will tell; what was made from it is judged as if they agreed
                continue
            if objection:
                print(f"{file}: {objection}; {'would be ' * args.dry_run}moved to {aside(file.parent)} and made again")
                move(file.parent, args.dry_run)
            else:
                adopted.add(file)
                agreeing[precision_of(rule, file)].append(file)
        for precision, files in agreeing.items():
            count += len(files)
            if not args.dry_run:
                record(rule, files, precision)
    if count:
        print(f"{count} results without records are what would be made now: {'would be ' * args.dry_run}adopted")
    derived = [file for pattern in DERIVED for file in unrecorded(folders, pattern)]
    for file in derived:
        move(file.parent if file.name == "analysis.json" else file, args.dry_run)
    if derived:
        print(f"{len(derived)} analyses, tables and figures without records {'would be ' * args.dry_run}made again")
    if note := other_versions(file for folder in folders for file in folder.glob(RUNS)):
        print(note)


def without_data(folders: list[Path], adopted: set[Path], rule: str) -> dict[Path, list[Path]]:
    """Manifests of data that are missing or were moved away, each with the results of `rule` made from it that agree in
    all else."""
    found = defaultdict(list)
    for file in unrecorded(folders, MANIFESTS[rule]):
        if judge(rule, file, adopted) == NO_DATA:
            found[data_of(file)].append(file)
    return found


def prepare(missing: dict[Path, list[Path]], dry_run: bool) -> None:
    """Let Snakemake make missing data. Raises UserError when it cannot; no run has been moved then."""
    from workflow_scripts.errors import UserError

    for data, runs in missing.items():
        which = f"{data.parent} {'would be' if dry_run else 'is'} made first"
        print(f"{which}, to be compared with the data that {len(runs)} runs were made from", flush=True)
    if missing and not dry_run:
        # Seen by the user: it may take a download. Without a lock: if it is killed, the next call can go on.
        command = ["snakemake", "--logger=terminal", "--nolock", "--", *map(str, missing)]
        if subprocess.run([sys.executable, "-m", *command], env=environment()).returncode:
            runs = ", ".join(str(Path(*data.parts[:2], "runs", data.parts[3])) for data in missing)
            raise UserError(f"data cannot be made; mend that, or move their runs out of results/: {runs}")


def unrecorded(folders: list[Path], pattern: str) -> Iterator[Path]:
    """Files that Snakemake has no record of. Evaluations of a run that was moved away are not met any more."""
    for folder in folders:
        for file in sorted(folder.glob(pattern), key=generation):
            if not is_recorded(file):
                yield file


def generation(file: Path) -> tuple[int, Path]:
    """Sorts a run behind all that it descends from."""
    from workflow_scripts.errors import UserError
    from workflow_scripts.files import read_json

    try:
        origin = file.name == "run.json" and read_json(file)["spec"]["init"]
        parent = file.parents[4] / origin["run"] / "run.json" if origin and "run" in origin else None
        return (generation(parent)[0] + 1 if parent else 0), file
    except (UserError, KeyError, TypeError, RecursionError):
        return 0, file


def judge(rule: str, file: Path, adopted: set[Path]) -> str | None:
    """Why the result of a manifest is not what would be made now; None if it is."""
    # Only where there is something to judge: ./reproduce asks each time.
    from workflow_scripts.catalogue import (
        load_catalogue,
        parse_run,
        precision_as_made,
        resolve_candidates,
        resolve_data,
        resolve_evaluation,
        resolve_intervention,
        resolve_run,
    )
    from workflow_scripts.errors import UserError
    from workflow_scripts.facts import of_candidates, of_data, of_evaluation, of_intervention, of_training
    from workflow_scripts.files import read_json

    try:
        catalogue, content, scale = load_catalogue(), read_json(file), file.parts[1]
        if rule == "prepare":
            return disagreement(content, content["spec"], of_data(resolve_data(catalogue, file.parts[3], scale)), file)
        if rule == "candidates":
            objection = disagreement(
                content, content["spec"], of_candidates(resolve_candidates(catalogue, file.parts[3], scale)), file
            )
            if objection or not current(data_of(file), adopted):
                return objection or NO_DATA
            return other_data(content, data_of(file).parent)
        if rule == "search":
            return judge_search(content, file, adopted)
        run, data, folder = parse_run(catalogue, "/".join(file.parts[3:7])), data_of(file), Path(*file.parts[:7])
        if rule == "train":
            precision = precision_as_made(catalogue, run, scale, content["spec"]["training"]["precision"])
            spec = resolve_run(catalogue, run, scale, precision)
            objection = disagreement(content, content["spec"], of_training(spec), file)
            if objection or not current(data, adopted):
                return objection or NO_DATA
            return (
                other_data(content, data.parent)
                or other_parent(content, Path(*file.parts[:2]), adopted)
                or other_search(content, Path(*file.parts[:2], "search", *file.parts[3:6], "chosen.json"), adopted)
            )
        if not current(data, adopted):
            return NO_DATA
        if not current(folder / "run.json", adopted):
            return f"{folder / 'run.json'}, which it was made from, is missing or not current"
        trained = read_json(folder / "run.json")
        if content["checkpoint_sha256"] != trained["files"]["checkpoint/model.safetensors"]:
            return "it scored another checkpoint"
        if rule == "intervene":
            candidates = Path(*file.parts[:2], "candidates", run.task, "candidates.json")
            if not current(candidates, adopted):
                return f"{candidates}, which it was made from, is missing or not current"
            if content["candidates_sha256"] != read_json(candidates)["files"]["candidates.parquet"]:
                return "it was made from other candidates"
            now = of_intervention(resolve_intervention(catalogue, run, scale), trained["spec"])
        else:
            now = of_evaluation(resolve_evaluation(catalogue, run, scale), trained["spec"])
        given = content.get("spec", content.get("settings"))  # as it was once called
        return disagreement(content, given, now, file) or other_data(content, data.parent)
    except (UserError, KeyError, TypeError) as error:
        return f"cannot be judged ({error})"


def data_of(file: Path) -> Path:
    """The manifest of the data that a run or candidates, to which a file belongs, are made from."""
    return Path(*file.parts[:2], "data", file.parts[3], "dataset.json")


def current(file: Path, adopted: set[Path]) -> bool:
    return file.exists() and (is_recorded(file) or file in adopted)


def disagreement(content: dict, given: dict, now: "Facts", file: Path) -> str | None:
    """The first thing about a manifest that differs from what would be made now, or from the files beside it."""
    from workflow_scripts.files import sha256_file
    from workflow_scripts.planning.changes import fact_changes

    if content["facts"] != str(now):
        return next(fact_changes(content["facts"], given, now))
    for name, sha256 in content["files"].items():
        path = file.parent / name
        if not path.exists():
            return f"{path} is missing"
        if sha256_file(path) != sha256:
            return f"{path} was changed after it was made"
    return None


def other_data(content: dict, data: Path) -> str | None:
    from workflow_scripts.training.prepared import data_digest

    return None if content["data_digest"] == data_digest(data) else f"it was made from other data than {data}"


def other_parent(content: dict, scale: Path, adopted: set[Path]) -> str | None:
    """Whether the run started from weights that are not those of its parent now."""
    from workflow_scripts.files import read_json

    origin = content["spec"]["init"]
    if not origin or "run" not in origin:
        return None
    manifest = scale / "runs" / origin["run"] / "run.json"
    if not current(manifest, adopted):
        return f"{manifest}, which it started from, is missing or not current"
    weights = read_json(manifest)["files"]["checkpoint/model.safetensors"]
    return None if content["init_digest"] == weights else f"it started from other weights than {origin['run']} has"


def other_search(content: dict, file: Path, adopted: set[Path]) -> str | None:
    """Whether the run was trained with other settings than its search chose."""
    from workflow_scripts.catalogue import digest
    from workflow_scripts.files import read_json

    if "search" not in content["spec"]:
        return None
    if not current(file, adopted):
        return f"{file}, which it was trained with, is missing or not current"
    same = content["search_digest"] == digest(read_json(file)["chosen"])
    return None if same else f"it was trained with other settings than {file} has"


def judge_search(content: dict, file: Path, adopted: set[Path]) -> str | None:
    """Why a search is not what would be made now. The run that it started from is judged after it: only its weights are
    compared here."""
    from workflow_scripts.catalogue import load_catalogue, parse_run, precision_as_made, resolve_run, searched
    from workflow_scripts.facts import of_search
    from workflow_scripts.files import read_json

    catalogue, scale = load_catalogue(), file.parts[1]
    variant = parse_run(catalogue, "/".join((*file.parts[3:6], "seed-0")))
    precision = precision_as_made(catalogue, variant, scale, content["spec"]["training"]["precision"])
    run = searched(catalogue, variant, scale, precision)
    if run is None:
        return "nothing is searched for this variant"
    spec = resolve_run(catalogue, run, scale, precision)
    objection = disagreement(content, content["spec"], of_search(spec), file)
    if objection or not current(data_of(file), adopted):
        return objection or NO_DATA
    origin = spec["init"]
    if origin and "run" in origin:
        weights = read_json(file.parents[4] / "runs" / origin["run"] / "run.json")["files"]
        if content["init_digest"] != weights["checkpoint/model.safetensors"]:
            return f"it started from other weights than {origin['run']} has"
    return other_data(content, data_of(file).parent)


def precision_of(rule: str, file: Path) -> str | None:
    """The `--config precision` under which Snakemake is to record a result."""
    from workflow_scripts.catalogue import load_catalogue, precision_as_made
    from workflow_scripts.files import read_json

    if rule in ("prepare", "candidates"):
        return None
    manifest = file if rule == "search" else Path(*file.parts[:7]) / "run.json"
    variant, made = "/".join(file.parts[3:6]), read_json(manifest)["spec"]["training"]["precision"]
    return precision_as_made(load_catalogue(), f"{variant}/seed-0", file.parts[1], made)


def record(rule: str, files: list[Path], precision: str | None) -> None:
    """Let Snakemake record the files as made by it. It sees this one rule: no other job is touched along."""
    config = ["--config", f"precision={precision}"] if precision else []
    how = ("--quiet", "all", "--nolock", "--touch", "--force")
    rules = ("prepare", "prepare_large") if rule == "prepare" else (rule,)
    snakemake(*how, *config, "--allowed-rules", *rules, "--", *map(str, files))


def aside(path: Path) -> Path:
    """A free place under results/<scale>/not-adopted/."""
    scale = Path(*path.parts[:2])
    target = scale / "not-adopted" / path.relative_to(scale)
    number = 1
    while target.exists():
        number += 1
        target = target.with_name(f"{path.name}.{number}")
    return target


def move(path: Path, dry_run: bool) -> None:
    """Move a result out of Snakemake's sight. Nothing is deleted."""
    if not dry_run and path.exists():
        target = aside(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.rename(path, target)
