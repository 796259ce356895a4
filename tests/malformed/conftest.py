"""A small project with everything that a user can edit or bring, made once, and what each case
asserts.
"""

import shutil
import signal
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from hashlib import sha256
from io import StringIO
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.config.as_json import resolve_run
from tests.reporting.made_up import write_run
from tests.training.causal_toy import causal_spec, definitions, write_prompts, write_text
from tests.training.toy import ROOT, name_parent, toy_spec, write_data
from workflow_scripts.__main__ import main
from workflow_scripts.common.files import hash_files, read_json, write_json
from workflow_scripts.config.catalogue import parse_run
from workflow_scripts.config.loading import load_catalogue, read_catalogue
from workflow_scripts.data.prepared import digest_data
from workflow_scripts.evaluation.scores import write_scores
from workflow_scripts.interventions.candidates import build
from workflow_scripts.interventions.settings import Options
from workflow_scripts.interventions.synonym_resources import make_stand_in_resources

RUNS = [f"scan-jump-x2/transformer/default/seed-{seed}" for seed in (11, 12)]
ENCODERS = {
    "pairs": "pairs-wordpiece/bert/pretrain",
    "sememes": "pairs-wordpiece/cat/pretrain",
    "sentences": "paws/cat/mix",
    "questions": "squad/bert/ft",
}
SEARCH = {"seed": 3, "learning_rate": [0.01], "batch_sentences": [16]}
LEFT = {"lock", "log.txt"}  # what a refused training leaves in its state folder: who ran when


@dataclass
class Place:
    """The project's folder, and the bytes of its files before any damage."""

    root: Path
    content: dict[str, bytes]

    def write(self, name: str, content: bytes | None) -> None:
        """Replace a file; with None by a folder."""
        shutil.rmtree(self.root / name) if (self.root / name).is_dir() else (
            self.root / name
        ).unlink(missing_ok=True)
        read_catalogue.cache_clear()
        self.root.joinpath(name).mkdir() if content is None else self.root.joinpath(
            name
        ).write_bytes(content)

    def record(self, name: str) -> None:
        """Record a damaged file in run.json of the toy runs, as if they had been trained with it:
        it is read then.
        """
        for run, data in (("toy/run", "toy/data"), ("causal/ft", "causal/prompts")):
            content = read_json(self.root / run / "run.json")
            content["data_digest"] = digest_data(self.root / data)
            write_json(
                self.root / run / "run.json", content | {"files": hash_files(self.root / run)}
            )

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Undo all changes that the block makes."""
        try:
            yield
        finally:
            kept = {
                str(self.root / folder)
                for name in self.content
                for folder in (name, *Path(name).parents)
            }
            for path in sorted(self.root.rglob("*"), reverse=True):
                if str(path) not in kept or (
                    path.is_dir() and path.relative_to(self.root).as_posix() in self.content
                ):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
            for name, content in self.content.items():
                path = self.root / name
                if not path.exists() or path.read_bytes() != content:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(content)
                    read_catalogue.cache_clear()


def read_tree(root: Path) -> dict[str, str]:
    """The sha256 of each file, without the lock and the log of a training and without a fetch's
    locks.
    """
    files = (
        path
        for path in root.rglob("*")
        if path.is_file() and path.name not in LEFT and path.suffix != ".lock"
    )
    return {
        name: sha256(path.read_bytes()).hexdigest()
        for path in files
        if ".locks" not in (name := path.relative_to(root).as_posix())
    }


def call(words: list[str]) -> tuple[int, str]:
    """Run a command in this process; returns its exit code and standard error. One that hangs is
    ended.
    """

    def hang(*_: object) -> None:
        raise AssertionError(f"{words} hangs")

    said, before = StringIO(), signal.signal(signal.SIGALRM, hang)
    signal.alarm(300)  # long, because a busy machine may stop a process for minutes
    try:
        with redirect_stderr(said), redirect_stdout(StringIO()):
            return main(words), said.getvalue()
    except SystemExit as error:
        return error.code, said.getvalue()
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def assert_refused(
    place: Place, words: list[str], names: str, run=call, may_work: bool = False, problems: int = 1
) -> None:
    """A command fails with one line per problem that names the file, or its folder, and changes no
    file.
    """
    before = read_tree(place.root)
    code, said = run(words)
    lines = said.splitlines()
    if may_work and code == 0:
        return
    assert code not in (0, None) and "Traceback" not in said, (
        said or f"{words} says nothing, exit code {code}"
    )
    assert len(lines) >= problems and all(line.startswith("error: ") for line in lines), said
    named = [names in line or str(Path(names).parent) in line for line in lines]
    # What depends on a broken entry of the catalogue is wrong, too.
    assert any(named) if names.endswith((".yaml", "published.csv")) else all(named), (
        f"{names} is not named: {said}"
    )
    assert read_tree(place.root) == before


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    root = tmp_path_factory.mktemp("malformed")
    for name in ("catalogue", "papers/sq_transformer"):
        shutil.copytree(ROOT / name, root / name)
    text = (
        (ROOT / "config.yaml")
        .read_text()
        .replace("[sq_transformer, carma, lrf, cat, recompose]", "[sq_transformer]")
    )
    (root / "config.yaml").write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        read_catalogue.cache_clear()
        make_toy_runs(root)
        make_results(root)
        make_brought_files(root)
    names = read_tree(root)
    yield Place(root, {name: (root / name).read_bytes() for name in names})
    read_catalogue.cache_clear()  # other tests have another project as their current folder


def make_toy_runs(root: Path) -> None:
    """A task of each kind with data and a spec, of three of them runs; settings; a search with its
    result.
    """
    for name, spec in {
        "toy": toy_spec(max_steps=2, validate_every=2),
        "search": toy_spec(max_steps=2, validate_every=2) | {"search": SEARCH},
        "pretrain": causal_spec("language_modelling", "llama", max_steps=2, validate_every=2),
    }.items():
        write_json(root / f"{name}.json", spec)
    encoders = {}
    for name, run in ENCODERS.items():
        encoders[name] = resolve_run(load_catalogue(), f"{run}/seed-1", "demo")
        encoders[name]["training"] |= {"max_steps": 2, "validate_every": 2}
        write_json(root / f"{name}.json", encoders[name])
    write_data(root / "toy/data")
    write_text(root / "causal/text")
    write_prompts(root / "causal/prompts")
    (root / "candidates").mkdir()
    table = build(
        [content for content, _ in definitions()],
        make_stand_in_resources(),
        Options(resources="stand_in"),
    )
    pq.write_table(table, root / "candidates/candidates.parquet")
    write_json(root / "candidates/candidates.json", {"files": hash_files(root / "candidates")})
    write_json(root / "evaluation.json", {"splits": ["test"], "batch_tokens": 128, "max_length": 4})
    write_json(root / "answers.json", {"splits": ["test"], "batch_tokens": 128})
    write_json(root / "intervention.json", {"split": "test", "rates": [0.5], "seeds": [1]})
    for words in (
        "train --spec toy.json --data toy/data --out toy/run",
        "search --spec search.json --data toy/data --out toy/search",
        "prepare --task pairs-wordpiece --scale demo --out encoders/pairs",
        "prepare --task paws --scale demo --out encoders/paws",
        "prepare --task squad --scale demo --out encoders/squad",
        "train --spec pairs.json --data encoders/pairs --out encoders/bert",
        "train --spec sememes.json --data encoders/pairs --out encoders/cat",
        "train --spec pretrain.json --data causal/text --out causal/pretrain",
    ):
        call_well(words)
    for name, parent in (("sentences", "cat"), ("questions", "bert")):
        init = root / f"encoders/{parent}/checkpoint"
        write_json(root / f"{name}.json", name_parent(encoders[name], "--init", init))
    init = "causal/pretrain/checkpoint"
    spec = causal_spec("prompt", "llama", max_steps=2, validate_every=2)
    write_json(root / "ft.json", name_parent(spec, "--init", root / init))
    call_well(f"train --spec ft.json --data causal/prompts --out causal/ft --init {init}")


def call_well(words: str) -> None:
    """Call a command that must succeed."""
    progress = () if words.startswith("prepare") else ("--progress", "none")
    code, said = call([*words.split(), *progress])
    assert code == 0, said


def make_results(root: Path) -> None:
    """Invented runs of a table at the scale `small`, with the table, the claims and an export."""
    results = root / "results/small"
    for name in RUNS:
        write_run(
            results,
            parse_run(load_catalogue(), name),
            40,
            examples=20,
            readouts={"last": 40, "in_distribution": 40},
        )
        write_json(results / "runs" / name / "eval/evaluation.json", {"absent": []})
        spec = resolve_run(load_catalogue(), name, "small")
        made = {
            "run": name,
            "scale": "small",
            "protocol": "reduced",
            "spec": spec,
            "steps": 1,
            "parameters": 2,
        }
        write_json(results / "runs" / name / "run.json", made)
        cost = {
            "seconds_per_step": 1.0,
            "precision": "fp32",
            "peak_gpu_memory_bytes": None,
            "cpu": "x",
            "device": "cpu",
            "seconds": 1.0,
        }
        write_json(results / "runs" / name / "record.json", cost | {"device_name": "x"})
        (results / "runs" / name / "checkpoint").mkdir()
        (results / "runs" / name / "checkpoint/model.safetensors").touch()
        (results / "runs" / name / "training.csv").write_text("step,name,value\n1,loss,2.5\n")
    for analysis in load_catalogue().papers["sq_transformer"].analyses:
        (results / "analyses/sq_transformer" / analysis).mkdir(parents=True)
        write_scores(results / "analyses/sq_transformer" / analysis / "scores.csv", [])
    words = [
        "--scale",
        "small",
        "--results",
        "results/small",
        "--out",
        "results/small/claims.csv",
        "--runs",
        *RUNS,
    ]
    assert call(["claims", "--papers", "sq_transformer", *words]) == (0, "")
    words = [
        "--scale",
        "small",
        "--results",
        "results/small",
        "--out",
        "results/small/tables",
        "--runs",
        *RUNS,
    ]
    assert call(["table", "--paper", "sq_transformer", "--display", "table1", *words]) == (0, "")


def make_brought_files(root: Path) -> None:
    """A crate, a mirror with the list of trusted files, and a data spec."""
    write_json(
        root / "crate/results/demo/config.json", {"scale": "demo", "papers": ["sq_transformer"]}
    )
    (root / "crate/README.md").write_text("x")
    files = {
        name: sha256((root / "crate" / name).read_bytes()).hexdigest()
        for name in hash_files(root / "crate")
    }
    graph = [{"@id": name, "sha256": digest} for name, digest in files.items()]
    write_json(root / "crate/ro-crate-metadata.json", {"@graph": graph})
    with zipfile.ZipFile(root / "crate.zip", "w") as archive:
        for name in hash_files(root / "crate"):
            archive.write(root / "crate" / name, name)
    for name, text in {
        "mirror/wordnet/COPYRIGHT": "x" * 2105,
        "mirror/amazon/reviews_Digital_Music_5.json.gz": "x",
        "trusted.csv": f"source,sha256,bytes,date\nsst/x,{'0' * 64},1,2026-01-01\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    spec = {
        "task": "x",
        "prepare": "workflow_scripts.data.datasets.scan",
        "sources": [],
        "protocol": "reduced",
    }
    write_json(
        root / "data.json",
        spec | {"options": {"set": "add_jump", "limit": {"train": 5, "test": 5}}},
    )


@pytest.fixture
def place(made: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """The project as the current folder, to be damaged."""
    monkeypatch.chdir(made.root)
    with made.restored():
        yield made
