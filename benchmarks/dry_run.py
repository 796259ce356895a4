"""`./reproduce -n` against a plain Snakemake workflow with as many jobs and files: CPU seconds by
number of jobs.
"""

import argparse
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from workflow_scripts.reporting.figures.style import GREY, LOOKS, make_figure, use_style

PROJECT = Path(__file__).parents[1]
PLOT = Path(__file__).with_suffix(".svg")
# Of each of the 47 variants of the scale `full`. Two jobs a run and some ninety others make 1,000
# to 20,000 jobs.
SEEDS = (10, 52, 106, 212)
# About as many jobs and the same files without our rules' functions, parameters and resources.
# Tables, figures, claims and analyses read most scores about six times.
PLAIN = """
SEEDS = range(config["seeds"])
RUNS = expand("task-{task}/method/variant-{n}/seed-{seed}", task=range(12), n=range(4), seed=SEEDS)
RUN = "results/runs/{task}/{method}/{variant}/{seed}"

rule all:
    input: expand("results/runs/{run}/eval/scores.csv", run=RUNS), expand("results/tables/{n}.csv", n=range(6))

rule prepare:
    output: "results/data/{task}/dataset.json"
    log: "results/logs/prepare/{task}.log"
    shell: "touch {output} > {log}"

rule train:
    input: "results/data/{task}/dataset.json"
    output: RUN + "/checkpoint/model.safetensors", RUN + "/training.csv", RUN + "/run.json"
    log: "results/logs/train/{task}/{method}/{variant}/{seed}.log"
    shell: "touch {output} > {log}"

rule evaluate:
    input: "results/data/{task}/dataset.json", RUN + "/run.json", RUN + "/checkpoint/model.safetensors"
    output: RUN + "/eval/predictions.parquet", RUN + "/eval/scores.csv", RUN + "/eval/evaluation.json"
    log: "results/logs/evaluate/{task}/{method}/{variant}/{seed}.log"
    shell: "touch {output} > {log}"

rule table:
    input: expand("results/runs/{run}/eval/scores.csv", run=RUNS)
    output: "results/tables/{n}.csv"
    log: "results/logs/table/{n}.log"
    shell: "touch {output} > {log}"
"""


def cpu_seconds(command: list[str], folder: Path) -> tuple[float, str]:
    """(CPU seconds of a command and all that it starts, what it said)."""

    def used() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = used()
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        check=True,
    )
    return used() - before, done.stdout + done.stderr


def ours(seeds: int) -> tuple[float, int]:
    """(CPU seconds, jobs) of one dry run that lists its jobs."""
    config = ["scale=full", "papers=[sq_transformer]", f"seeds={list(range(1, seeds + 1))}"]
    seconds, said = cpu_seconds(["./reproduce", "-n", "--forceall", "--config", *config], PROJECT)
    return seconds, int(re.findall(r"^(\d+) jobs: ", said, re.MULTILINE)[-1])


def plain(seeds: int) -> float:
    """CPU seconds of one dry run of the plain workflow, which lists nothing."""
    options = ["-n", "--forceall", "--quiet", "rules", "--cores", "1", "--scheduler", "greedy"]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "Snakefile").write_text(PLAIN, encoding="utf-8")
        command = [sys.executable, "-m", "snakemake", *options, "--config", f"seeds={seeds}"]
        return cpu_seconds(command, Path(folder))[0]


def draw(jobs: list[int], seconds: dict[str, list[float]]) -> None:
    with use_style():
        figure = make_figure(3.3, 2.2)  # inches
        axes = figure.subplots()
        for (name, values), look in zip(seconds.items(), LOOKS, strict=False):
            axes.plot(
                jobs, values, color=look.colour, marker=look.marker, linestyle=look.line, label=name
            )
        axes.axhline(10, color=GREY, linewidth=0.6)
        axes.set(
            xlim=0, ylim=0, xlabel="jobs", ylabel="CPU seconds", xticks=range(0, 20_001, 5_000)
        )
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.legend()
        figure.savefig(
            PLOT, metadata={"Date": None, "Creator": None}, bbox_inches="tight", pad_inches=0.03
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    jobs: list[int] = []
    seconds: dict[str, list[float]] = {"./reproduce -n": [], "a plain workflow": []}
    for seeds in SEEDS:
        turns = [(*ours(seeds), plain(seeds)) for _ in range(rounds)]
        times, counts, bare = zip(*turns, strict=True)
        jobs.append(counts[0])
        # Another load can only add to a time.
        for values, measured in zip(seconds.values(), (times, bare), strict=True):
            values.append(min(measured))
        ratio = statistics.median(ours / theirs for ours, theirs in zip(times, bare, strict=True))
        print(
            f"{jobs[-1]} jobs: {min(times):.1f} s, plain {min(bare):.1f} s, ratio {ratio:.2f}",
            flush=True,
        )
    draw(jobs, seconds)


if __name__ == "__main__":
    main()
