"""A small translation task with a prepared data folder, a spec for it, and the commands run as a
user runs them.
"""

import itertools
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from workflow_scripts.__main__ import main
from workflow_scripts.common.files import hash_files, read_json, write_json

ROOT = Path(__file__).parents[2]
SPECIAL = ["<pad>", "<s>", "</s>", "<unk>"]
SOURCE_WORDS = [*SPECIAL, *"abcdefgh"]
TARGET_WORDS = [*SPECIAL, *"ABCDEFGH"]


def pair(letters: str) -> tuple[str, str]:
    """The task: write every letter in capitals, backwards."""
    return " ".join(letters), " ".join(reversed(letters.upper()))


def write_split(path: Path, pairs: list[tuple[str, str, str]]) -> None:
    """Write (source, target, subset) rows in the format of a prepared split; unknown words get the
    id of <unk>.
    """
    source, target, subset = (list(column) for column in zip(*pairs, strict=True))
    ids = {
        f"{side}_ids": [
            [words.index(word) if word in words else 3 for word in text.split()] for text in texts
        ]
        for side, texts, words in (
            ("source", source, SOURCE_WORDS),
            ("target", target, TARGET_WORDS),
        )
    }
    lists = {name: pa.array(column, pa.list_(pa.int32())) for name, column in ids.items()}
    pq.write_table(pa.table({"source": source, "target": target, "subset": subset, **lists}), path)


def write_data(folder: Path, seed: int = 0) -> Path:
    """A prepared data folder: pairs of 1 to 6 letters, 400 train, 60 valid, 120 test, in subsets
    `short` and `long`.
    """
    folder.mkdir(parents=True)
    draw = random.Random(seed)
    for split, count in (("train", 400), ("valid", 60), ("test", 120)):
        letters = ["".join(draw.choices("abcdefgh", k=draw.randint(1, 6))) for _ in range(count)]
        named = [(*pair(word), "short" if len(word) < 3 else "long") for word in letters]
        write_split(folder / f"{split}.parquet", named)
    (folder / "vocabulary.json").write_text(
        json.dumps({"source": SOURCE_WORDS, "target": TARGET_WORDS})
    )
    (folder / "dataset.json").write_text(
        json.dumps({"task": "toy", "subset_groups": {"both": ["short", "long"]}})
    )
    return folder


def record_files(run_dir: Path) -> None:
    """Record the files of a run that a test has changed, as if training had written them."""
    run = read_json(run_dir / "run.json")
    write_json(run_dir / "run.json", run | {"files": hash_files(run_dir)})


def flip_bit(file: Path) -> None:
    """Change one bit in the middle of a file."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def toy_spec(**training: object) -> dict:
    """A resolved spec of a small Transformer with dropout; `training` overrides its settings."""
    return {
        "task": "toy",
        "kind": "seq2seq",
        "method": "transformer",
        "variant": "default",
        "seed": 3,
        "protocol": "reduced",
        "data": {},
        "init": None,
        "model": {
            "name": "transformer",
            "layers": 1,
            "heads": 2,
            "width": 32,
            "feed_forward": 32,
            "dropout": 0.1,
        },
        "problem": {"label_smoothing": 0.0},
        "objective": {},
        "training": {
            "max_steps": 60,
            "batch_tokens": 128,
            "learning_rate": 0.005,
            "warmup_steps": 20,
            "betas": [0.9, 0.98],
            "adam_epsilon": 1e-8,
            "weight_decay": 0.01,
            "clip_norm": 1.0,
            "validate_every": 25,
            "log_every": 10,
            "validation": {"split": "valid", "metric": "exact_match"},
            "torch_threads": 1,
            "precision": "fp32",
            **training,
        },
    }


def stopping_at(step: int) -> Callable:
    """`loop.update_weights`, but at that step of this process SIGTERM arrives."""
    from workflow_scripts.training import loop

    update, steps = loop.update_weights, itertools.count(1)

    def stopping(*arguments):
        if next(steps) == step:
            os.kill(os.getpid(), signal.SIGTERM)
        return update(*arguments)

    return stopping


def command(name: str, *arguments: object) -> list[str]:
    """The command line of `python -m workflow_scripts NAME`."""
    return [sys.executable, "-m", "workflow_scripts", name, *map(str, arguments)]


def environment() -> dict[str, str]:
    """The environment for commands: one thread, and the repository's modules from any folder."""
    return {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(ROOT),
        "CUDA_VISIBLE_DEVICES": "",
    }


def call(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        command(name, *arguments), cwd=ROOT, env=environment(), capture_output=True, text=True
    )


def here(name: str, *arguments: object) -> int:
    """Run a command in this process, which has loaded torch already; returns the exit code."""
    with chdir(ROOT):
        return main([name, *map(str, arguments)])


def name_parent(spec: dict, *more: object) -> dict:
    """The spec, if it starts from a run, with the run of the folder after `--init` as that run."""
    if "--init" not in more or not spec["init"]:
        return spec
    folder = Path(str(more[more.index("--init") + 1]))
    run = json.loads((folder.parent / "run.json").read_text())
    return spec | {"init": {"run": run["run"], "spec": run["spec_digest"]}}


def run_main(name: str, *more: object, **options: object) -> int:
    """Run a command in this process, with `--option value` for each option; returns the exit code.

    The content of a JSON file, a dict, is written next to `out`.
    """
    words = []
    for option, value in options.items():
        if isinstance(value, dict):
            file = Path(f"{options['out']}.{option}.json")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(value))
            value = file
        words += [f"--{option.replace('_', '-')}", str(value)]
    return main([name, *words, "--progress", "none", *map(str, more)])


def assert_one_line_error(result: subprocess.CompletedProcess[str], *parts: str) -> None:
    """The command failed with one `error:` line that holds all `parts`, and no traceback."""
    assert result.returncode == 1, result.stderr
    assert_one_error(result.stderr, *parts)


def assert_one_error(stderr: str, *parts: str) -> None:
    """The text has one `error:` line that holds all `parts`, and no traceback."""
    errors = [line for line in stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1 and "Traceback" not in stderr, stderr
    assert all(part in errors[0] for part in parts), errors[0]
