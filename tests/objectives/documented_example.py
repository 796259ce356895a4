"""The objective that docs/adding.md shows."""

from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "docs/examples/near_layers"
NAME = "near_layers"


def read_documented_objective() -> dict[str, str]:
    """Return the files of the example's code, by their paths in the package."""
    package = EXAMPLE / "workflow_scripts"
    files = {}
    for file in sorted(package.rglob("*.py")):
        files[str(file.relative_to(package))] = file.read_text(encoding="utf-8")
    return files
