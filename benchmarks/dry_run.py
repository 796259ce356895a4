"""`./reproduce -n` with a catalogue of 5,000 jobs, against the same call with the jobs of the demo."""

import re
import subprocess
import time

SEEDS = list(range(1, 81))


def dry_run(*config: str) -> tuple[float, int]:
    """(seconds, jobs) of one dry run."""
    start = time.perf_counter()
    command = ["./reproduce", "-n", "--quiet", "rules", "--forceall", "--config", *config]
    output = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - start
    counts = re.findall(r"^total\s+(\d+)|(\d+) jobs", output.stdout + output.stderr, re.MULTILINE)
    return seconds, int(max(counts[-1]))


def main() -> None:
    for name, config in (("demo", ["scale=demo"]), ("many seeds", ["scale=paper", f"seeds={SEEDS}"])):
        seconds, jobs = dry_run(*config)
        print(f"{name}: {jobs} jobs in {seconds:.1f} s, {1000 * seconds / jobs:.1f} ms a job")


if __name__ == "__main__":
    main()
