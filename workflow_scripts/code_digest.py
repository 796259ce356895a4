"""Digest of the code that can change a result: the import closure of some modules, without comments and docstrings."""

import ast
import hashlib
from functools import cache
from pathlib import Path

PACKAGE = "workflow_scripts"
# What the first four make (specs, names of files) is compared itself, as parameters and inputs of the rules; the others
# show progress and look after folders.
WITHOUT_EFFECT = {
    f"{PACKAGE}.{name}"
    for name in (
        "catalogue",
        "displays",
        "schema",
        "errors",
        "code_digest",
        "files",
        "training.progress",
        "training.outputs",
    )
}


@cache
def _module(root: Path, name: str) -> tuple[str, tuple[str, ...]]:
    """(sha256 of the module's syntax tree, modules of the package that it imports)."""
    tree = ast.parse(_path(root, name).read_text())
    imports = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imports |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if documented and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    ours = tuple(sorted(i for i in imports if i.startswith(PACKAGE + ".") and _path(root, i).exists()))
    return hashlib.sha256(repr(_plain(tree)).encode()).hexdigest(), ours


def _plain(node: object) -> object:
    """A syntax tree as tuples, without its empty fields: newer Pythons have more of them."""
    if isinstance(node, ast.AST):
        fields = ((name, _plain(value)) for name, value in ast.iter_fields(node) if value not in (None, []))
        return type(node).__name__, *fields
    return tuple(map(_plain, node)) if isinstance(node, list) else node


def _path(root: Path, name: str) -> Path:
    return root / Path(*name.split(".")).with_suffix(".py")


@cache
def closure(modules: tuple[str, ...], root: Path = Path(".")) -> dict[str, str]:
    """Module name -> digest, for `modules` and everything of the package that they import."""
    found: dict[str, str] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name not in found and name not in WITHOUT_EFFECT:
            found[name], imports = _module(root, name)
            waiting += imports
    return dict(sorted(found.items()))


@cache
def code_digest(modules: tuple[str, ...], root: Path = Path(".")) -> str:
    """16 hex digits over the closure. A comment, a docstring or a moved line does not change it."""
    lines = "\n".join(f"{name} {digest}" for name, digest in closure(modules, root).items())
    return hashlib.sha256(lines.encode()).hexdigest()[:16]
