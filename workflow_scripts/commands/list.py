"""Print the names that experiments.yaml can have: tasks, and the methods that can be trained on
them; or what one of them is, and where it is set.
"""

import argparse
from collections.abc import Iterator

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import suggest_name
from workflow_scripts.config.catalogue import Catalogue
from workflow_scripts.config.entries import Method, Place, Task
from workflow_scripts.config.loading import load_catalogue


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="a task or method (default: the names of all)"
    )


def main(args: argparse.Namespace) -> None:
    """Print the names, or what NAME is. Raises UserError for an unknown name."""
    catalogue = load_catalogue()
    if args.name is None:
        lines = list_all(catalogue)
    elif args.name in catalogue.methods:
        lines = list_variants(args.name, catalogue.methods[args.name])
    elif args.name in catalogue.tasks:
        lines = describe_task(args.name, catalogue)
    elif args.name in catalogue.papers:
        raise UserError(
            f"{args.name} is a paper, no task or method; `plan --papers {args.name} --by table` "
            "lists its tables and figures, `--by claim` its claims"
        )
    else:
        names = [*catalogue.tasks, *catalogue.methods]
        advice = suggest_name(args.name, names)
        raise UserError(f"no task or method has the name {args.name!r}; {advice}")
    print(*lines, sep="\n")


def list_all(catalogue: Catalogue) -> Iterator[str]:
    """Yield the tasks of each kind, and the methods that can be trained on them."""
    kinds = dict.fromkeys(task.kind for task in catalogue.tasks.values())
    for kind in kinds:
        yield f"tasks of kind {kind}"
        titles = {name: task.title for name, task in catalogue.tasks.items() if task.kind == kind}
        yield from align(titles)
        yield f"methods for {kind}"
        yield from align(describe_methods(catalogue, kind))
        yield ""
    yield "`list METHOD` prints the variants of a method, `list TASK` what a task is."


def describe_methods(catalogue: Catalogue, kind: str) -> dict[str, str]:
    """Return name -> title and number of variants of the methods for a kind of task."""
    texts = {}
    for name, method in catalogue.methods.items():
        if kind in method.kinds:
            count = len(method.variants)
            texts[name] = f"{method.title} ({count} variant{'s' * (count != 1)})"
    return texts


def list_variants(name: str, method: Method) -> Iterator[str]:
    """Yield what a method is, and its variants."""
    yield f"method {name}: {method.title}, for tasks of kind {', '.join(method.kinds)}"
    yield f"  {find_place(name, method)}"
    yield "variants"
    yield from align({name: variant.title for name, variant in method.variants.items()})


def describe_task(name: str, catalogue: Catalogue) -> Iterator[str]:
    """Yield what a task is, and the methods that can be trained on it."""
    task = catalogue.tasks[name]
    yield f"task {name}: {task.title}, of kind {task.kind}"
    yield f"  {find_place(name, task)}"
    yield f"methods for {task.kind}"
    yield from align(describe_methods(catalogue, task.kind))


def find_place(name: str, entry: Task | Method) -> Place:
    """Return where the entry of this name is, without those that it extends."""
    return next(block.place for block in entry.blocks if block.place.entry == (name,))


def align(texts: dict[str, str]) -> Iterator[str]:
    """Yield a line for each name and its text, the texts below each other."""
    width = max(map(len, texts), default=0)
    for name, text in texts.items():
        yield f"  {name:{width}}  {text}"
