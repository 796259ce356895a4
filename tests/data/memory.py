"""Measure the memory that preparing data takes, in a separate process."""

import json
import os
import subprocess
import sys
from pathlib import Path

# Memory that is free again goes back to the system at once: else the peak depends on what else the
# machine does.
ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "PYTHONPATH": ".",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": "65536",
}

PROGRAM = """
import importlib, json, pathlib, resource, sys
from tests.data.preparing import prepare_data, write_data
if __name__ == "__main__":
    folder = pathlib.Path(__file__).parent
    name, options, sources, constants = map(json.loads, sys.argv[1:])
    module = importlib.import_module(f"workflow_scripts.data.datasets.{name}")
    vars(module).update(constants)
    paths = {source: pathlib.Path(path) for source, path in sources.items()}
    spec = {"task": name, "protocol": "paper", "prepare": module.__name__, "options": options, "sources": []}
    write_data(prepare_data(module, options, paths), spec, folder / "out")
    content = json.loads((folder / "out/dataset.json").read_text())
    # getrusage's peak may be that of the process that started this one
    with open("/proc/self/status") as status:
        own = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    peak = max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
    print(json.dumps([content["splits"]["train"]["rows"], peak]))
"""


def measure_peak(
    folder: Path, name: str, options: dict, sources: dict[str, Path], **constants: int
) -> tuple[int, int]:
    """(training rows, KiB at the peak) of a data set whose module has these constants; `folder`
    gets the files.
    """
    (folder / "measure.py").write_text(PROGRAM)
    paths = {source: str(path) for source, path in sources.items()}
    words = [
        sys.executable,
        str(folder / "measure.py"),
        *map(json.dumps, (name, options, paths, constants)),
    ]
    environment = ENVIRONMENT | {"HOME": str(folder), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(words, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
