"""Write the files of a new method: the Transformer with an objective of your own, and a paper that
trains both and compares them.

They are those of docs/examples/near_layers under the new name, and run at once.
"""

import argparse
import keyword
import re
from pathlib import Path

from workflow_scripts.commands.new_paper import SCHEMAS, check_yaml_text
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import write_text_file
from workflow_scripts.config.loading import load_catalogue

OBJECTIVES = Path("workflow_scripts/objectives")
NAME = re.compile(r"[a-z][a-z0-9_]{0,49}")
EXAMPLE = Path("docs/examples/near_layers")
EXAMPLE_NAME = re.compile("near[-_ ]layers")  # in code, in the catalogue and in tables


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("name", metavar="NAME", help="name of the method, such as near_layers")


def main(args: argparse.Namespace) -> None:
    """Write the method, its objective and its paper, all called NAME.

    Raises UserError for a name that is not allowed, and if the method or a file of it exists.
    """
    check_name(args.name)
    if not EXAMPLE.exists():
        raise UserError(f"there is no {EXAMPLE} here; run this in the root of the repository")
    if args.name in load_catalogue().methods:
        raise UserError(f"the method {args.name} exists; choose another name")
    # A package hides a module of the same name.
    for path in (OBJECTIVES / args.name, OBJECTIVES / f"{args.name}.py"):
        if path.exists():
            raise UserError(f"{path} exists; choose another name")
    files = make_files(args.name)
    for path in files:
        if path.exists():
            raise UserError(f"{path} exists; choose another name")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text_file(path, text)
    print(*files, sep="\n")
    print(f"./reproduce --papers {args.name} trains it next to the Transformer, in a minute")
    print(f"then change compute_loss in {OBJECTIVES / args.name}/objective.py")
    print(SCHEMAS)


def check_name(name: str) -> None:
    """Raise UserError unless the name can be that of a folder of Python code."""
    if not NAME.fullmatch(name):
        raise UserError(
            f"the name {name!r} cannot name a method with code of its own; "
            "take a letter a-z and up to 49 of a-z, 0-9 and _"
        )
    if keyword.iskeyword(name):
        raise UserError(f"the name {name!r} is a word of Python; choose another name")
    check_yaml_text(name, "name")


def make_files(name: str) -> dict[Path, str]:
    """Return path -> text of the files of the example, with `name` in place of near_layers."""
    files = {}
    for file in sorted(EXAMPLE.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            path = EXAMPLE_NAME.sub(name, str(file.relative_to(EXAMPLE)))
            files[Path(path)] = EXAMPLE_NAME.sub(name, file.read_text(encoding="utf-8"))
    return files
