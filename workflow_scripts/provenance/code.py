"""Hash the code that can change a result.

It is the import closure of some modules, without comments, docstrings, and the descriptions of
fields.
"""

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.system import PROJECT
from workflow_scripts.provenance.digest_cache import hash_source, open_cache

PACKAGE = "workflow_scripts"
# Packages whose code is in no digest. `common` computes nothing. The specs and file names that
# `config` makes are parameters and inputs of the rules, so Snakemake compares them itself.
WITHOUT_EFFECT = {f"{PACKAGE}.{name}" for name in ("common", "config", "provenance")}
# These modules of `config` are in digests: tables, figures and claims call them when they are made.
CALLED_BY_REPORTS = (
    "config.analysis_plan",
    "config.axes",
    "config.catalogue",
    "config.claim_needs",
    "config.display_schema",
    "config.displays",
    "config.specs",
)
WITH_EFFECT = {f"{PACKAGE}.{name}" for name in CALLED_BY_REPORTS}


class Module(NamedTuple):
    """A module of this package.

    digest: the sha256 of its code without docstrings. imports: modules of this package that it
    imports, and the packages that it is in.
    """

    digest: str
    imports: tuple[str, ...]


@cache
def _read_module(root: Path, name: str) -> Module:
    file = _locate_module(root, name)
    # Relative imports of a package begin in it, those of a module in the package that it is in.
    importer = f"{name}.{file.stem}" if file.stem == "__init__" else name
    try:
        source = file.read_bytes()
    except FileNotFoundError as error:
        raise UserError(
            f"there is no module {name}; write it, or correct its name in catalogue/ or papers/"
        ) from error
    digests = open_cache(Path(__file__))
    key = hash_source(importer, source)
    entry = digests.get(key)
    if entry is None:
        entry = _analyse_source(importer, source)
        digests.add(key, entry)
    digest, names = entry
    # Python runs the code of the packages that a module is in before that of the module.
    packages = [name.rsplit(".", depth)[0] for depth in range(1, name.count(".") + 1)]
    ours = [imported for imported in [*names, *packages] if _locate_module(root, imported).exists()]
    return Module(digest, tuple(ours))


def _analyse_source(name: str, source: bytes) -> tuple[str, list[str]]:
    """Return the digest of a module, and the names in this package that it imports, sorted.

    A name may be that of a module, or of something in a module.
    """
    tree = ast.parse(source)
    imports: set[str] = set()
    for call in ast.walk(tree):
        if isinstance(call, ast.Call):
            _remove_description(call)
    for node in [tree, *_list_statements(tree.body)]:
        if isinstance(node, ast.Import):
            imports |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = _name_imported_module(name, node)
            imports.add(module)
            imports |= {f"{module}.{alias.name}" for alias in node.names}
        _remove_docstring(node)
    return _digest_tree(tree), [
        imported for imported in sorted(imports) if imported.startswith(f"{PACKAGE}.")
    ]


def _digest_tree(tree: ast.Module) -> str:
    return hashlib.sha256(repr(_make_plain(tree)).encode()).hexdigest()


def _name_imported_module(importer: str, node: ast.ImportFrom) -> str:
    """Return the name after `from`, of a relative import with the package of the importer."""
    parts = []
    if node.level:
        parts += importer.split(".")[: -node.level]
    if node.module:
        parts.append(node.module)
    return ".".join(parts)


def _remove_docstring(node: ast.AST) -> None:
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return
    if ast.get_docstring(node, clean=False) is not None:
        node.body = node.body[1:]


def _remove_description(call: ast.Call) -> None:
    """Remove the description of a field of settings, which is documentation."""
    if isinstance(call.func, ast.Name) and call.func.id == "Field":
        call.keywords = [keyword for keyword in call.keywords if keyword.arg != "description"]


def _list_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield all statements, also those inside others.

    Those for type checkers, which never run, are left out.
    """
    for node in body:
        if _is_for_type_checkers(node):
            continue
        yield node
        for block in ("body", "orelse", "finalbody"):
            yield from _list_statements(getattr(node, block, []))
        for part in [*getattr(node, "handlers", []), *getattr(node, "cases", [])]:
            yield from _list_statements(part.body)


def _is_for_type_checkers(node: ast.stmt) -> bool:
    if not isinstance(node, ast.If) or not isinstance(node.test, ast.Name):
        return False
    return node.test.id == "TYPE_CHECKING"


def _make_plain(node: object) -> object:
    """Convert a syntax tree to tuples, without empty fields, of which newer Pythons have more."""
    if isinstance(node, ast.AST):
        fields = []
        for name, value in ast.iter_fields(node):
            if value not in (None, []):
                fields.append((name, _make_plain(value)))
        return type(node).__name__, *fields
    if isinstance(node, list):
        return tuple(map(_make_plain, node))
    return node


def _locate_module(root: Path, name: str) -> Path:
    """Return the file of a module, or of a package, which has code in its __init__.py."""
    path = root / Path(*name.split("."))
    package_file = path / "__init__.py"
    if package_file.exists():
        return package_file
    return path.with_suffix(".py")


def find_options_module(module: str, root: Path = PROJECT) -> set[str]:
    """Return the name of the module that has the options of another one, if there is one.

    A module need not import it: the options are read before it is called.
    """
    package, _, name = module.rpartition(".")
    options = f"{package}.options.{name}"
    return {options} if _locate_module(root, options).exists() else set()


@cache
def find_closure(modules: tuple[str, ...], root: Path = PROJECT) -> dict[str, str]:
    """Return name -> digest of the modules of this package that `modules` are or import.

    Those without code, such as most __init__.py, are left out.
    """
    without_code = _digest_tree(ast.parse(""))
    digests: dict[str, str] = {}
    waiting = [name for name in modules if name.startswith(f"{PACKAGE}.")]
    while waiting:
        name = waiting.pop()
        if name in digests or not _has_effect(name):
            continue
        module = _read_module(root, name)
        digests[name] = module.digest
        waiting += module.imports
    return {name: digest for name, digest in sorted(digests.items()) if digest != without_code}


def _has_effect(module: str) -> bool:
    """Return whether a module can change a result."""
    package = ".".join(module.split(".")[:2])
    return module in WITH_EFFECT or package not in WITHOUT_EFFECT


@cache
def digest_code(modules: tuple[str, ...], root: Path = PROJECT) -> str:
    """16 hex digits over the closure. A comment, a docstring or a moved line does not change it."""
    lines = "\n".join(f"{name} {digest}" for name, digest in find_closure(modules, root).items())
    return hashlib.sha256(lines.encode()).hexdigest()[:16]
