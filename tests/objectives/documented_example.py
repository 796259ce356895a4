"""The objective that docs/adding.md shows."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/adding.md"
NAME = "near_layers"
# The heading of a file's code, which is indented as a block, and the lines below it.
START = re.compile(r"^    # workflow_scripts/(objectives/\S+)\n", re.MULTILINE)
CODE = re.compile(r"(?:    .*\n|\n)*")


def read_documented_objective() -> dict[str, str]:
    """Return the files of the example, by their paths in the package."""
    text = PAGE.read_text()
    files = {f"objectives/{NAME}/__init__.py": ""}
    for start in START.finditer(text):
        following = START.search(text, start.end())
        end = following.start() if following else len(text)
        code = CODE.match(text, start.end(), end)[0]
        files[start[1]] = re.sub(r"^    ", "", code, flags=re.MULTILINE)
    return files
