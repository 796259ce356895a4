"""Measure the memory that preparing data takes, in a separate process."""

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import importlib, json, pathlib, resource, sys
from workflow_scripts.data.prepared import prepare_data
if __name__ == "__main__":
    folder = pathlib.Path(__file__).parent
    name, options, sources, constants = map(json.loads, sys.argv[1:])
    module = importlib.import_module(f"workflow_scripts.data.datasets.{name}")
    vars(module).update(constants)
    (folder / "out").mkdir()
    paths = {source: pathlib.Path(path) for source, path in sources.items()}
    content = prepare_data(module, options, paths).fill(folder / "out")
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(json.dumps([content["splits"]["train"]["rows"], peak]))
"""


def measure_peak(folder: Path, name: str, options: dict, sources: dict[str, Path], **constants: int) -> tuple[int, int]:
    """(training rows, KiB at the peak) of a data set whose module has these constants; `folder` gets the files."""
    (folder / "measure.py").write_text(PROGRAM)
    paths = {source: str(path) for source, path in sources.items()}
    words = [sys.executable, str(folder / "measure.py"), *map(json.dumps, (name, options, paths, constants))]
    environment = {"PYTHONPATH": ".", "PATH": "/usr/bin:/bin", "HOME": str(folder), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(words, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
