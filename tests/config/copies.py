"""Copies of catalogue/ and papers/ with one thing changed."""

from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


def edit(file: Path, change) -> None:
    content = yaml.safe_load(file.read_text())
    change(content)
    file.write_text(yaml.safe_dump(content, sort_keys=False))
