"""Hash the code that can change a result: the import closure of some modules, without comments and docstrings."""

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.system import PROJECT

PACKAGE = "workflow_scripts"
# Packages that cannot change a result: `common` computes nothing. The specs and file names that `config` makes are
# parameters and inputs of the rules, so Snakemake compares them itself.
WITHOUT_EFFECT = {f"{PACKAGE}.{name}" for name in ("common", "config", "provenance")}
# Two modules of `config` can: reporting reads cells and claims with them.
WITH_EFFECT = {f"{PACKAGE}.config.{name}" for name in ("analysis_plan", "display_schema")}


@cache
def _module(root: Path, name: str) -> tuple[str, tuple[str, ...]]:
    """Return the sha256 of a module's code without docstrings, and the modules of the package that it imports."""
    try:
        tree = ast.parse(_path(root, name).read_bytes())
    except FileNotFoundError as error:
        raise UserError(
            f"there is no module {name}; write it, or correct its name in catalogue/ or papers/"
        ) from error
    imports: set[str] = set()
    for node in [tree, *_statements(tree.body)]:
        if isinstance(node, ast.Import):
            imports |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            package = name.split(".")[: -node.level] if node.level else []  # of a relative import
            module = ".".join([*package, *filter(None, [node.module])])
            imports |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
        documented = isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        )
        if documented and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    ours = sorted(
        name for name in imports if name.startswith(f"{PACKAGE}.") and _path(root, name).exists()
    )
    return hashlib.sha256(repr(_plain(tree)).encode()).hexdigest(), tuple(ours)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield all statements, also those inside others, without those for type checkers, which never run."""
    for node in body:
        if (
            isinstance(node, ast.If)
            and isinstance(node.test, ast.Name)
            and node.test.id == "TYPE_CHECKING"
        ):
            continue
        yield node
        for inner in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(node, inner, []))
        for part in [*getattr(node, "handlers", []), *getattr(node, "cases", [])]:
            yield from _statements(part.body)


def _plain(node: object) -> object:
    """Convert a syntax tree to tuples, without empty fields, of which newer Pythons have more."""
    if isinstance(node, ast.AST):
        fields = (
            (name, _plain(value))
            for name, value in ast.iter_fields(node)
            if value not in (None, [])
        )
        return type(node).__name__, *fields
    return tuple(map(_plain, node)) if isinstance(node, list) else node


def _path(root: Path, name: str) -> Path:
    return root / Path(*name.split(".")).with_suffix(".py")


@cache
def find_closure(modules: tuple[str, ...], root: Path = PROJECT) -> dict[str, str]:
    """Return module name -> digest, for the modules of this package that `modules` are or import."""
    found: dict[str, str] = {}
    waiting = [name for name in modules if name.startswith(f"{PACKAGE}.")]
    while waiting:
        name = waiting.pop()
        if name not in found and (
            name in WITH_EFFECT or ".".join(name.split(".")[:2]) not in WITHOUT_EFFECT
        ):
            found[name], imports = _module(root, name)
            waiting += imports
    return dict(sorted(found.items()))


@cache
def code_digest(modules: tuple[str, ...], root: Path = PROJECT) -> str:
    """16 hex digits over the closure. A comment, a docstring or a moved line does not change it."""
    lines = "\n".join(f"{name} {digest}" for name, digest in find_closure(modules, root).items())
    return hashlib.sha256(lines.encode()).hexdigest()[:16]
