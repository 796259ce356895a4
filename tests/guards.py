"""Hold a rebuilt checkout against the one that it started from: the same specs, jobs, data, weights and displays.

    python -m tests.guards make FOLDER [PART ...]      here, before the first move
    python -m tests.guards compare FOLDER [PART ...]   after each move, on the same machine

Parts: specs (resolved, of all runs at three scales), requests (which paper asks for which run), displays (expanded, and
analyses), claims (expanded), jobs (of `-n --forceall` at three scales), demo (what results/demo
holds after ./reproduce), trainings (13 short ones, one killed and resumed; they read results/demo/data). `as_now` says
which names a move has changed on purpose. Delete this module when the rebuilding is done.
"""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.yaml_files import read_yaml_mapping
from workflow_scripts.config.loading import load_catalogue, load_config
from workflow_scripts.config.packages import check_sections
from workflow_scripts.config.requested import list_requested_runs
from workflow_scripts.config.run_specs import (
    find_parent_run,
    resolve_evaluation,
    resolve_intervention,
    resolve_run,
)
from workflow_scripts.config.runs import parse_run
from workflow_scripts.config.task_specs import load_options, resolve_candidates, resolve_data
from workflow_scripts.tasks.settings import Training

SCALES = ("demo", "small", "full")
# Every kind of task with every model and objective; a run comes after the one that it starts from.
TRAININGS = (
    "scan-jump-x2/transformer/default/seed-1",
    "scan-jump-x2/sq-transformer/sal-entropy-3/seed-1",
    "scan-jump-x2/lrf/default/seed-1",
    "scan-jump-x2/transformer-carma/carma/seed-1",
    "cfq-mcd1/roberta/lrf/seed-1",
    "cognition/sq-transformer/srl/seed-1",
    "text-bpe-4k/llama-small/pretrain/seed-1",
    "idm/llama-small/carma/seed-1",
    "pairs-wordpiece/bert/pretrain/seed-1",
    "pairs-wordpiece/cat/pretrain/seed-1",
    "paws/cat/mix/seed-1",
    "sst2/bert/ft/seed-1",
    "squad/bert/ft/seed-1",
)
KILLED = "cognition/sq-transformer/srl/seed-1"
STEPS = 20


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def catalogue_runs(scale: str) -> list:
    """All runs that any paper asks for, extra ones too."""
    catalogue = load_catalogue()
    content = read_yaml_mapping(Path("config.yaml")) | {"scale": scale, "papers": list(catalogue.papers), "extra": True}
    return list(list_requested_runs(catalogue, load_config(content)))


def specs() -> dict[str, str]:
    """Resolved specs as canonical JSON, or the error."""
    catalogue, found = load_catalogue(), {}

    def note(name: str, resolve, *arguments) -> None:
        try:
            found[name] = json.dumps(resolve(*arguments), sort_keys=True)
        except UserError as error:
            found[name] = f"error: {error}"

    for scale in SCALES:
        for run in catalogue_runs(scale):
            for part, resolve in (
                ("run", resolve_run),
                ("evaluation", resolve_evaluation),
                ("intervention", resolve_intervention),
            ):
                note(f"{scale} {part} {run}", resolve, catalogue, run, scale)
        for task in catalogue.tasks:
            note(f"{scale} data {task}", resolve_data, catalogue, task, scale)
            note(f"{scale} candidates {task}", resolve_candidates, catalogue, task, scale)
    return found


def requests() -> dict[str, str]:
    """The runs that each paper asks for at each scale, without and with extra ones."""
    catalogue, found = load_catalogue(), {}
    for scale in SCALES:
        for paper in catalogue.papers:
            for extra in (False, True):
                content = read_yaml_mapping(Path("config.yaml")) | {"scale": scale, "papers": [paper], "extra": extra}
                runs = list_requested_runs(catalogue, load_config(content))
                found[f"{scale} {paper}{' extra' * extra}"] = json.dumps(sorted(map(str, runs)))
    return found


def displays() -> dict[str, str]:
    """Tables, figures and analyses, as the code reads them."""
    return {
        f"{paper} {part} {name}": json.dumps(entry, sort_keys=True)
        for paper, content in load_catalogue().papers.items()
        for part in ("displays", "analyses")
        for name, entry in getattr(content, part).items()
    }


def claims() -> dict[str, str]:
    """Claims, as the code reads them."""
    return {
        f"{paper} {claim['claim']}": json.dumps(claim, sort_keys=True)
        for paper, content in load_catalogue().papers.items()
        for claim in content.claims
    }


def jobs() -> dict[str, str]:
    """Inputs and outputs of each job of `-n --forceall`."""
    found = {}
    for scale in SCALES:
        made = subprocess.run(
            ["snakemake", "-n", "--forceall", "--logger=plan", "--workflow-profile=none", "--config", f"scale={scale}"],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONPATH": next(str(path.parent) for path in Path("profiles").glob("*/*_plan"))},
        )
        for line in made.stdout.splitlines():
            if line.startswith("{"):
                job = json.loads(line)
                name = f"{scale} {job['rule']} {json.dumps(job['wildcards'], sort_keys=True)}"
                found[name] = json.dumps([sorted(job["input"]), sorted(job["output"])])
    return found


def content_digest(file: Path) -> str:
    """Of a Parquet file its columns, since the bytes may hold the version of the writer."""
    if file.suffix == ".parquet":
        table = pq.read_table(file).replace_schema_metadata(None)
        return digest(f"{table.schema}{table.to_pydict()}".encode())
    return digest(file.read_bytes())


def demo() -> dict[str, str]:
    """What a finished demo holds, but for records of how and when it was made."""
    root = Path("results/demo")
    patterns = (
        "claims.csv",
        "claim_sides.csv",
        "checks.csv",
        "tables/**/*.csv",
        "tables/**/*.md",
        "tables/**/*.tex",
        "figures/**/*.csv",
        "data/**/*.parquet",
        "data/**/vocab*",
        "data/**/tokenizer.json",
        "runs/**/*.safetensors",
        "runs/**/training.csv",
        "runs/**/scores.csv",
        "runs/**/predictions.parquet",
        "candidates/**/*.parquet",
        "analyses/**/*.csv",
    )
    files = sorted({file for pattern in patterns for file in root.glob(pattern) if file.is_file()})
    if not files:
        raise SystemExit("results/demo is empty; run ./reproduce first")
    return {str(file.relative_to(root)): content_digest(file) for file in files}


def command(*words: str, **options) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-m", "workflow_scripts", *words], **options)


def trainings() -> dict[str, str]:
    """Weights, curves and outputs of short trainings on one thread."""
    catalogue, found = load_catalogue(), {}
    with tempfile.TemporaryDirectory() as scratch:
        for name in TRAININGS:
            out = Path(scratch, name)
            out.mkdir(parents=True)
            spec = resolve_run(catalogue, name, "demo")
            spec["training"] |= {"max_steps": STEPS, "validate_every": 10, "log_every": 5, "torch_threads": 1}
            (out / "spec.json").write_text(json.dumps(spec))
            words = ["train", f"--spec={out}/spec.json", f"--data=results/demo/data/{spec['task']}"]
            words += [f"--out={out}/run", f"--state={out}/state", "--device=cpu", "--progress=none"]
            if before := find_parent_run(catalogue, parse_run(catalogue, name), "demo"):
                words.append(f"--init={scratch}/{before}/run/checkpoint")
            if name == KILLED:
                kill_once(words, out / "state")
            log = (out / "log").open("w")
            if command(*words, stdout=log, stderr=log).wait():
                raise SystemExit(f"{name}: {(out / 'log').read_text()[-500:]}")
            (out / "settings.json").write_text(
                json.dumps(resolve_evaluation(catalogue, parse_run(catalogue, name), "demo"))
            )
            words = [
                "evaluate",
                words[2],
                f"--settings={out}/settings.json",
                f"--run-dir={out}/run",
                f"--out={out}/eval",
            ]
            if command(*words, "--device=cpu", stdout=log, stderr=log).wait():
                raise SystemExit(f"{name}: {(out / 'log').read_text()[-500:]}")
            for file in ("run/checkpoint/model.safetensors", "run/training.csv", "eval/predictions.parquet"):
                found[f"{name} {Path(file).name}"] = content_digest(out / file)
            print(name, file=sys.stderr, flush=True)
    return found


def kill_once(words: list[str], state: Path) -> None:
    """SIGKILL a training as soon as it has saved a state."""
    process = command(*words, "--save-every=0", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not list(state.glob("step-*")):
        if process.poll() is not None:
            raise SystemExit(f"{' '.join(words)} ended before it had saved a state")
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()


# The explicit table of what has another name now: part -> name before -> name now.
# Asked for by no paper.
NEW_STAND_INS = ("demo data sst2-30pc", "demo data sst2-70pc")
# Of a run without steps, which is the scoring of given weights now.
SCORED = ("task", "kind", "method", "variant", "seed", "protocol", "data", "model", "problem", "init")
RENAMED: dict[str, dict[str, str]] = {}
PARTS = {
    "specs": specs,
    "requests": requests,
    "displays": displays,
    "claims": claims,
    "jobs": jobs,
    "demo": demo,
    "trainings": trainings,
}


def variant_now(method: str, variant: str) -> str:
    """The name of a variant without steps now: whose weights are scored."""
    found = re.fullmatch(r"(?:(paws|paws-qqp)-(ft|cont|comp|mix)|original(-no-.*)?)", variant)
    if not found:
        return variant
    task, tuned, ablation = found.groups()
    return f"{tuned}@{task}" if task else f"{'mix' if method == 'cat' else 'ft'}{ablation or ''}@start"


def run_now(name: str) -> str:
    """The name of a run, or of a file of it, now."""
    return re.sub(r"([\w.-]+)/([\w.-]+)(?=/seed-)", lambda found: f"{found[1]}/{variant_now(*found.groups())}", name)


def display_now(entry, key: str = ""):
    """An entry of displays.yaml now: names of variants, and what runs say in the place of options."""
    if isinstance(entry, list):
        return [display_now(one, key) for one in entry]
    if not isinstance(entry, dict):
        return variant_now("", entry) if key == "over" and isinstance(entry, str) else entry
    if isinstance(entry.get("variant"), str) and "method" in entry:
        entry = entry | {"variant": variant_now(entry["method"], entry["variant"])}
    in_runs = ("series", "readout") if key == "runs" else ("readouts", "models")
    return {name: display_now(one, name) for name, one in entry.items() if name not in in_runs}


def as_now(spec: dict) -> dict:
    """A run's spec under the names of now, with every default filled in. `init.spec` is a digest of another one."""
    spec = json.loads(json.dumps(spec).replace('"workflow_scripts.evaluation.', '"'))
    if spec["init"]:
        spec["init"].pop("spec", None)
    spec |= check_sections(spec, spec["kind"], "") | {"variant": variant_now(spec["method"], spec["variant"])}
    if "weights" in spec or not spec["training"]["max_steps"]:
        threads = {"torch_threads": spec["training"]["torch_threads"]}
        return {key: spec[key] for key in SCORED} | threads | {"data": as_now_data(spec["data"])}
    training = spec["training"] | {"betas": tuple(spec["training"]["betas"])}
    spec["training"] = Training.model_validate(training).model_dump(mode="json")
    spec["data"] = as_now_data(spec["data"])
    return spec


def as_now_data(spec: dict) -> dict:
    """A data spec with every default filled in."""
    options = load_options(spec["prepare"], spec["task"]).model_validate(spec["options"])
    return spec | {"options": options.model_dump(mode="json", by_alias=True)}


def as_read(part: str, kind: str, spec: dict) -> dict:
    """A spec without what its kind of task does not read."""
    if part == "evaluation" and kind != "seq2seq":
        spec.pop("max_length")
    if part == "intervention" and kind != "prompt":
        spec.pop("blocks")
    return spec


AS_NOW = {"run": as_now, "data": as_now_data}


def differences(part: str, before: dict[str, str], now: dict[str, str]) -> list[str]:
    """What is missing, new or other, under the names of now."""
    before, now = ({RENAMED.get(part, {}).get(name, name): one for name, one in side.items()} for side in (before, now))
    prefix = r"workflow_scripts\.(?:analyses|evaluation|reporting\.figures)\.(?:bleu\.)?"  # of modules, once
    before = {name: re.sub(prefix, "", content) for name, content in before.items()}
    if part == "requests":  # in whatever order
        before = {name: json.dumps(sorted(map(run_now, json.loads(runs)))) for name, runs in before.items()}
    if part == "specs":
        before = {run_now(name): content for name, content in before.items()}
    if part == "displays":
        before, now = (
            {name: json.dumps(display_now(json.loads(one))) for name, one in side.items()} for side in (before, now)
        )
        before, now = ({name: as_shown(json.loads(one)) for name, one in side.items()} for side in (before, now))
    if part == "specs":
        tasks = load_catalogue().tasks
        for side in (before, now):
            for name, content in side.items():
                _, what, of = name.split(" ")
                if content.startswith("error"):
                    continue
                found = AS_NOW.get(what, dict)(json.loads(content))
                found = as_read(what, tasks[of.split("/")[0]].kind, found)
                side[name] = json.dumps(found, sort_keys=True)
            for name in NEW_STAND_INS:
                side.pop(name)
    return (
        [f"{name} is missing" for name in before.keys() - now.keys()]
        + [f"{name} is new" for name in now.keys() - before.keys()]
        + [
            f"{name} {changes(before[name], now[name])}"
            for name in before
            if name in now and not equal(before[name], now[name])
        ]
    )


def as_shown(display: dict) -> str:
    """A table by its cells, in whichever of row and column a value is given."""
    display = dict(display)
    if "rows" in display:
        rows, columns = display.pop("rows"), display.pop("columns")
        display["headings"] = [
            [(one.get("group"), one[key]) for one in side] for key, side in (("row", rows), ("column", columns))
        ]
        for row in rows:
            for column in columns:
                cell = {"decimals": 2} | column | row
                name = f"{cell.pop('row')} / {cell.pop('column')}"
                cell.pop("group", None)
                if "method" not in cell and "analysis" not in cell:  # published alone
                    cell = {key: value for key, value in cell.items() if key not in ("split", "subset")}
                if isinstance(cell.get("variant"), dict):
                    cell["variant"] = cell["variant"].get(cell.get("task"))
                weights = cell.pop("weights", None)
                if cell.get("variant") and "method" in cell:
                    cell["variant"] = variant_now(cell["method"], cell["variant"]) + (f"@{weights}" if weights else "")
                display[name] = cell
    return json.dumps(display, sort_keys=True)


def equal(before: str, now: str) -> bool:
    """Whether two contents are the same; errors, whatever they say."""
    return before == now or (before.startswith("error") and now.startswith("error"))


def changes(before: str, now: str) -> str:
    """Where two JSON contents differ."""
    try:
        old, new = (dict(flat(json.loads(one))) for one in (before, now))
    except ValueError:
        return f"was {before}, is {now}"
    keys = [key for key in old | new if old.get(key) != new.get(key)]
    return "; ".join(f"{key} was {old.get(key)}, is {new.get(key)}" for key in keys)


def flat(content, place: str = ""):
    """Yield each value with the keys that lead to it."""
    if isinstance(content, dict) and content:
        for key, value in content.items():
            yield from flat(value, f"{place}.{key}")
    else:
        yield place, content


def main() -> None:
    what, folder, *chosen = sys.argv[1:]
    wrong = False
    for part in chosen or PARTS:
        file = Path(folder, f"{part}.json")
        found = PARTS[part]()
        if what == "make":
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(found, indent=0, sort_keys=True))
            print(f"{part}: {len(found)} kept")
            continue
        other = sorted(differences(part, json.loads(file.read_text()), found))
        print(f"{part}: {len(found)} compared, {len(other)} other")
        for line in other[: int(os.environ.get("SHOWN", "20"))]:
            print(f"  {line[:400]}")
        wrong |= bool(other)
    sys.exit(wrong)


if __name__ == "__main__":
    main()
