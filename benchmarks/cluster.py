"""A cut of the demo on a one-host SLURM cluster against the same cut without it, and what of a job
is not the job.

Both get the same cores, and the cluster runs the shipped profile as it is. It needs Debian's
packages slurmctld, slurmd, slurm-client and munge; the cluster lives in one folder under /tmp and
is gone afterwards.
"""

import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from datetime import datetime
from pathlib import Path

from benchmarks.turns import ratio, show, take_turns
from tests.slurm.cluster import Cluster, missing, up
from tests.workflow.projects import Project, copied
from workflow_scripts.common.files import read_json

ROUNDS = 2
CORES = os.cpu_count() or 1
RUN = "scan-jump-x2/sq-transformer/sal/seed-1"
# Data, three trainings two of which can run at once, one scoring, one analysis.
CUT = (
    "results/demo/analyses/sq_transformer/source-codes/analysis.json",
    f"results/demo/runs/{RUN}/eval/scores.csv",
)


def reproduce(project: Project, environment: dict[str, str], *arguments: str) -> None:
    """Run the cut in a copy without results."""
    for made in ("results", ".snakemake"):
        shutil.rmtree(project.root / made, ignore_errors=True)
    given = environment | {"OMP_NUM_THREADS": "1"}
    subprocess.run(
        ["./reproduce", *arguments, *CUT],
        cwd=project.root,
        env=given,
        check=True,
        capture_output=True,
    )


def of_jobs(cluster: Cluster) -> list[str]:
    """Per rule: how many jobs, and their median seconds waiting and running."""
    rules: dict[str, list[tuple[float, float]]] = {}
    for job in cluster.jobs():
        at = [datetime.fromisoformat(job[name]) for name in ("SubmitTime", "StartTime", "EndTime")]
        named = re.match(r"rule_([a-z]+)", job["Comment"])
        assert named, f"no job of Snakemake: {job['Comment']}"
        rule = named[1]
        rules.setdefault(rule, []).append(
            ((at[1] - at[0]).total_seconds(), (at[2] - at[1]).total_seconds())
        )
    lines = []
    for rule, times in rules.items():
        waits, runs = zip(*times, strict=True)
        medians = (
            f"{statistics.median(waits):.0f} s waiting, {statistics.median(runs):.0f} s running"
        )
        lines.append(f"{rule}: {len(times)} jobs, {medians}")
    return lines


def command(name: str, root: Path) -> list[str]:
    """The command of a rule for RUN, next to the results of the cut."""
    run, data = root / "results/demo/runs" / RUN, root / "results/demo/data" / RUN.split("/")[0]
    if name == "train":
        place = ["--out", str(root / "out"), "--state", str(root / "state")]
        return [
            "train",
            "--run",
            RUN,
            "--scale",
            "demo",
            "--data",
            str(data),
            "--device",
            "cpu",
            *place,
        ]
    return [
        "evaluate",
        "--run-dir",
        str(run),
        "--data",
        str(data),
        "--device",
        "cpu",
        "--out",
        str(root / "scored"),
    ]


def start_up(name: str, root: Path) -> tuple[float, float]:
    """Seconds of a whole command, and of its imports (which Python counts in a second call of it)."""
    line = [str(root / ".venv/bin/python"), "-m", "workflow_scripts", *command(name, root)]
    began = time.perf_counter()
    subprocess.run(line, cwd=root, check=True, capture_output=True)
    whole = time.perf_counter() - began
    line.insert(1, "-Ximporttime")
    said = subprocess.run(
        line,
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
    ).stderr
    return whole, sum(map(int, re.findall(r"^import time:\s+(\d+) \|", said, re.MULTILINE))) / 1e6


def main() -> None:
    if lacking := missing():
        raise SystemExit(f"error: not installed: {', '.join(lacking)}")
    # Not a folder that others cannot enter: munged refuses it.
    folder = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))
    cluster = up(folder, nodes=1, cores=CORES)
    try:
        project = copied(folder / "project")
        contenders = {
            "here": lambda: reproduce(project, dict(os.environ), f"--cores={CORES}"),
            "SLURM": lambda: reproduce(
                project, cluster.environment, "--workflow-profile=profiles/slurm"
            ),
        }
        seconds = take_turns(contenders, ROUNDS, warm_up=0)
        show(f"5 jobs of the demo on {CORES} cores", seconds, "here")
        print(f"SLURM / here: {ratio(seconds, 'SLURM', 'here'):.2f}")
        print(*of_jobs(cluster), sep="\n")
        for name in ("train", "evaluate"):
            whole, imports = start_up(name, project.root)
            print(
                f"{name}: {whole:.1f} s, of them {imports:.1f} s of imports ({imports / whole:.0%})"
            )
        work = read_json(project.root / "out/record.json")["seconds"]
        print(f"train: {work:.1f} s from its first step to its last")
    finally:
        cluster.down()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
