"""How much of Snakemake's time the settings of `snakemake_speed` save."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
JOBS = 1500
# Prints the share of the process's CPU time that garbage collection took, and how often Snakemake
# asked for the signature of the parameter's function.
SNAKEFILE = f"""
import atexit, gc, inspect, sys, time
sys.path.insert(0, {str(ROOT)!r})
from workflow_scripts.workflow.snakemake_speed import stop_garbage_collection

times = {{"start": [], "stop": []}}
questions = []
signature = inspect.signature
gc.callbacks.append(lambda phase, info: times[phase].append(time.process_time()))

def print_figures():
    seconds = sum(times["stop"]) - sum(times["start"])
    print("share", seconds / time.process_time(), len(questions))

atexit.register(print_figures)

def count(function, **options):
    if function is name_job:
        questions.append(function)
    return signature(function, **options)

inspect.signature = count
name_job = lambda wildcards: wildcards.job
%s

rule all:
    input: expand("scores/{{job}}", job=range({JOBS}))
rule train:
    output: "weights/{{job}}"
    params: name=name_job
    shell: "touch {{output}}"
rule evaluate:
    input: "weights/{{job}}"
    output: "scores/{{job}}"
    shell: "touch {{output}}"
"""


def measure(folder: Path, line: str) -> tuple[float, int]:
    """Return the share of garbage collection and the number of questions. `line` is one of the
    Snakefile.
    """
    folder.mkdir()
    (folder / "Snakefile").write_text(SNAKEFILE % line)
    command = [sys.executable, "-m", "snakemake", "-n", "--quiet", "all", "--cores", "1"]
    process = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    share, questions = process.stdout.split("share ")[1].split()
    return float(share), int(questions)


@pytest.mark.slow
def test_a_dry_run_spends_no_time_on_garbage(tmp_path: Path):
    assert measure(tmp_path / "ours", "stop_garbage_collection()")[0] == 0
    share, questions = measure(tmp_path / "snakemake", "")
    # Where this is no longer so, Python or Snakemake has changed, and `stop_garbage_collection` can
    # go.
    assert share > 0.05
    # Where this is no longer so, Snakemake keeps signatures itself, and `store_signature` can go.
    assert questions >= JOBS
