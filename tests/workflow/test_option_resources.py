"""Why options that change no result are strings under `resources:`."""

import subprocess
import sys
from pathlib import Path

import pytest

SNAKEFILE = """
DEVICE = config["device"]

rule evaluate:
    output: "scores.csv"
    log: "log.txt"
    conda: "environment.yaml"
    {}
    shell: "echo {} > {{output}} 2> {{log}}"
"""
AS_RESOURCE = SNAKEFILE.format("resources: device=DEVICE", "{resources.device:q}")
AS_PARAMETER = SNAKEFILE.format("params: device=DEVICE", "{params.device:q}")
AS_GLOBAL = SNAKEFILE.format("threads: 1", "{DEVICE:q}")


def call(folder: Path, content: str, device: str, *options: str) -> str:
    """Run Snakemake on a Snakefile with this content; return what it says."""
    folder.mkdir(exist_ok=True)
    (folder / "Snakefile").write_text(content)
    (folder / "environment.yaml").touch()
    command = [
        sys.executable,
        "-m",
        "snakemake",
        "--cores",
        "1",
        *options,
        "--config",
        f"device={device}",
    ]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True).stderr


def reruns_on_another_device(folder: Path, content: str) -> bool:
    call(folder, content, "cpu")
    assert (folder / "scores.csv").read_text() == "cpu\n"
    call(folder, content, "cuda")
    return (folder / "scores.csv").read_text() == "cuda\n"


@pytest.mark.slow
def test_a_resource_reruns_nothing_and_passes_the_linter(tmp_path: Path):
    assert not reruns_on_another_device(tmp_path / "resource", AS_RESOURCE)
    assert "Shell command directly uses variable" not in call(
        tmp_path / "resource", AS_RESOURCE, "cpu", "--lint"
    )
    # Where one of these is no longer so, use a parameter, or the global.
    assert reruns_on_another_device(tmp_path / "parameter", AS_PARAMETER)
    assert "Shell command directly uses variable DEVICE" in call(
        tmp_path / "global", AS_GLOBAL, "cpu", "--lint"
    )
