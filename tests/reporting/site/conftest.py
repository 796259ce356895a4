"""The site of the committed results, and that of a finished demo, built in an environment of their
own.
"""

import os
import shutil
import subprocess
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "results/reference/small"
DEMO = ROOT / "results/demo"


@pytest.fixture(scope="session")
def sphinx_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has the packages of .venv and, from envs/docs.lock, those of the site."""
    folder = tmp_path_factory.mktemp("docs")
    venv.create(folder)
    (packages,) = folder.glob("lib/python*/site-packages")
    (own,) = ROOT.glob(".venv/lib/python*/site-packages")
    (packages / "own.pth").write_text(f"{own.resolve()}\n")
    install = [
        "install",
        "-q",
        "--disable-pip-version-check",
        "--require-hashes",
        "--no-deps",
        "-r",
        "envs/docs.lock",
    ]
    pip = [ROOT / ".venv/bin/python", "-m", "pip", "--python", folder / "bin/python"]
    subprocess.run([*pip, *install], cwd=ROOT, check=True)
    return folder / "bin/python"


@pytest.fixture(scope="session")
def built(sphinx_python: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folders of HTML of `small` and, if a demo is finished, of `demo`; without a network where
    that is allowed.
    """
    folder = tmp_path_factory.mktemp("site")
    alone = (
        ["unshare", "-n"]
        if subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode == 0
        else []
    )
    folders = {"small": RESULTS} | ({"demo": DEMO} if (DEMO / "config.json").exists() else {})
    environment = os.environ | {"XDG_CACHE_HOME": str(folder / "cache")}
    processes = {}
    for scale, results in folders.items():
        command = [*alone, sphinx_python, "-m", "workflow_scripts", "site", "--results", results]
        processes[scale] = subprocess.Popen(
            [*command, "--out", folder / scale],
            cwd=ROOT,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
    for process in processes.values():
        assert (process.communicate()[1], process.returncode) == ("", 0)
    shutil.rmtree(folder / "cache", ignore_errors=True)
    return {scale: folder / scale for scale in folders}


@pytest.fixture
def small(built: dict[str, Path]) -> Path:
    return built["small"]


@pytest.fixture
def demo_site(built: dict[str, Path]) -> Path:
    if "demo" not in built:
        pytest.skip("no finished demo: run ./reproduce first")
    return built["demo"]
