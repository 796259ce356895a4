"""Results that were made with other versions of packages than those that are installed now."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from workflow_scripts.errors import UserError
from workflow_scripts.files import read_json
from workflow_scripts.provenance import versions

RUNS = "runs/*/*/*/*/run.json"
FIRST = ("torch", "snakemake")
MOST = 4


def other_versions(files: Iterable[Path]) -> str | None:
    """One line on the runs, by their run.json, of which a package had another version; None if there are none."""
    installed, found, runs = None, defaultdict(set), 0
    for file in files:
        installed = installed or versions()
        try:
            used = read_json(file).get("versions", {})
        except UserError:  # half a file: whoever reads it says so
            continue
        others = {name for name, version in used.items() if installed.get(name, version) != version}
        runs += bool(others)
        for name in others:
            found[name].add(used[name])
    if not found:
        return None
    names = sorted(found, key=lambda name: (name not in FIRST, name))
    said = [f"{name} {' and '.join(sorted(found[name]))} ({installed[name]} is installed)" for name in names[:MOST]]
    if len(names) > MOST:
        said.append(f"other versions of {len(names) - MOST} more packages")
    return (
        f"{runs} runs were made with {', '.join(said)}. That alone reruns nothing; to make them again: "
        "./reproduce -R train"
    )
