"""How long `./reproduce -n` takes to plan 5,000 jobs: `python -m benchmarks.dry_run`."""

import argparse
import re
import subprocess
import time


def plan(seeds: int) -> tuple[int, float]:
    """(jobs planned, seconds) at the paper scale with every run asked for with `seeds` seeds."""
    chosen = ",".join(map(str, range(1, seeds + 1)))
    started = time.perf_counter()
    done = subprocess.run(
        ["./reproduce", "-n", "--quiet", "--config", "scale=paper", f"seeds=[{chosen}]"],
        capture_output=True,
        text=True,
        check=True,
    )
    seconds = time.perf_counter() - started
    return int(re.search(r"^(\d+) jobs", done.stdout, re.MULTILINE)[1]), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=5000)
    jobs = parser.parse_args().jobs
    one, _ = plan(seeds=1)
    two, _ = plan(seeds=2)
    planned, seconds = plan(seeds=2 + -(-(jobs - two) // (two - one)))
    print(f"{planned} jobs planned in {seconds:.1f} s")


if __name__ == "__main__":
    main()
