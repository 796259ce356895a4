"""Seconds of compound translation error rate over CoGnition's 10,800 references, as the command
`cter` computes it.
"""

import argparse
import contextlib
import io
import statistics
import time
from pathlib import Path

from workflow_scripts.__main__ import main as command


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--files",
        type=Path,
        default=Path("results/downloads/cognition"),
        help="where fetch put them",
    )
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    names = {"source": "en", "compound": "compound", "hypothesis": "zh"}
    files = {name: args.files / f"cg-test_cg-test.{ending}" for name, ending in names.items()}
    options = [
        f"--{name}={file}"
        for name, file in {**files, "lexicon": args.files / "eval_lexicon"}.items()
    ]
    seconds, failed, printed = [], 0, io.StringIO()
    for _ in range(args.rounds):
        start, printed = time.perf_counter(), io.StringIO()
        with contextlib.redirect_stdout(printed):
            failed = command(["cter", *options])
        seconds.append(time.perf_counter() - start)
    if failed:
        raise SystemExit(failed)
    print(printed.getvalue())
    print(
        f"{statistics.median(seconds):.2f} s (median of {args.rounds}), files and imports among it"
    )


if __name__ == "__main__":
    main()
