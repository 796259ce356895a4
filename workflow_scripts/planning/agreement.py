"""Whether a result that came without Snakemake's records is what would be made now, by the facts in its manifest."""

from pathlib import Path

from workflow_scripts.canonical import digest
from workflow_scripts.catalogue.loading import load_catalogue
from workflow_scripts.catalogue.run_specs import (
    precision_as_made,
    resolve_evaluation,
    resolve_intervention,
    resolve_run,
    searched,
)
from workflow_scripts.catalogue.runs import parse_run
from workflow_scripts.catalogue.task_specs import resolve_candidates, resolve_data
from workflow_scripts.errors import UserError
from workflow_scripts.facts import (
    SHORT,
    Facts,
    of_candidates,
    of_data,
    of_evaluation,
    of_intervention,
    of_search,
    of_training,
)
from workflow_scripts.files import read_json, sha256_file
from workflow_scripts.planning.changes import fact_changes
from workflow_scripts.planning.records import is_recorded

NO_DATA = "the data that it was made from are missing"


def judge(rule: str, file: Path, adopted: set[Path]) -> str | None:
    """Why the result of a manifest is not what would be made now; None if it is."""
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
        scored = {"model": content["checkpoint_sha256"], **content.get("kept_sha256", {})}
        if any(trained["files"][f"checkpoint/{name}.safetensors"] != sha256 for name, sha256 in scored.items()):
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


def by_other_code(file: Path) -> bool:
    """Whether the data of a manifest were made from what they would be made from now, by other code."""
    try:
        before = SHORT.match(read_json(file)["facts"])
        now = of_data(resolve_data(load_catalogue(), file.parts[3], file.parts[1]))
        return before["given"] == digest(now.given) and before["code"] != now.code
    except (UserError, KeyError, TypeError):
        return False


def disagreement(content: dict, given: dict, now: Facts, file: Path) -> str | None:
    """The first thing about a manifest that differs from what would be made now, or from the files beside it."""
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
    """Whether a result was made from other prepared data than those that lie there now."""
    from workflow_scripts.training.prepared import data_digest  # loads torch

    return None if content["data_digest"] == data_digest(data) else f"it was made from other data than {data}"


def other_parent(content: dict, scale: Path, adopted: set[Path]) -> str | None:
    """Whether the run started from weights that are not those of its parent now."""
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
    if "search" not in content["spec"]:
        return None
    if not current(file, adopted):
        return f"{file}, which it was trained with, is missing or not current"
    same = content["search_digest"] == digest(read_json(file)["chosen"])
    return None if same else f"it was trained with other settings than {file} has"


def judge_search(content: dict, file: Path, adopted: set[Path]) -> str | None:
    """Why a search is not what would be made now. The run that it started from is judged after it: only its weights are
    compared here."""
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
    if rule in ("prepare", "candidates"):
        return None
    manifest = file if rule == "search" else Path(*file.parts[:7]) / "run.json"
    variant, made = "/".join(file.parts[3:6]), read_json(manifest)["spec"]["training"]["precision"]
    return precision_as_made(load_catalogue(), f"{variant}/seed-0", file.parts[1], made)


def data_of(file: Path) -> Path:
    """The manifest of the data that a run or candidates, to which a file belongs, are made from."""
    return Path(*file.parts[:2], "data", file.parts[3], "dataset.json")


def current(file: Path, adopted: set[Path]) -> bool:
    """Whether a manifest is there and Snakemake has a record of it, or will have."""
    return file.exists() and (is_recorded(file) or file in adopted)
