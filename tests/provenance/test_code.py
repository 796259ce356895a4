import ast
from pathlib import Path

import pytest

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.plug_ins import ANALYSES, FIGURES, MEASURES, list_modules
from workflow_scripts.provenance.code import digest_code, find_closure, find_options_module
from workflow_scripts.provenance.spec_fingerprints import Fingerprint

ROOT = Path(__file__).parents[2]
FILES = {
    "a.py": "from workflow_scripts.b import g\n\n\ndef f(x):\n    return g(x) + 1\n",
    "b.py": "import math\n\nUNIT = 'nats'\n\n\ndef g(x):\n    return math.sqrt(x)\n",
    "c.py": "VALUE = 3\n",
}


def package(folder: Path, **changes: str) -> Path:
    """A package of three modules, a -> b and c apart; `changes` replaces files. Each call has a
    root of its own.
    """
    root = folder / f"root{len(list(folder.iterdir()))}"
    (root / "workflow_scripts").mkdir(parents=True)
    for name, text in (FILES | {f"{key}.py": text for key, text in changes.items()}).items():
        (root / "workflow_scripts" / name).write_text(text)
    return root


def add_package(root: Path, init: str, **modules: str) -> None:
    """Add the package d."""
    folder = root / "workflow_scripts/d"
    folder.mkdir()
    for name, text in {"__init__": init, **modules}.items():
        (folder / f"{name}.py").write_text(text)


def of_a(root: Path) -> str:
    return digest_code(("workflow_scripts.a",), root)


def test_the_closure_follows_imports_inside_the_package(tmp_path: Path):
    assert list(find_closure(("workflow_scripts.a",), package(tmp_path))) == [
        "workflow_scripts.a",
        "workflow_scripts.b",
    ]


@pytest.mark.parametrize("words", ["from .b import g", "from . import b"])
def test_the_closure_follows_relative_imports(tmp_path: Path, words: str):
    root = package(tmp_path, a=f"{words}\n")
    assert list(find_closure(("workflow_scripts.a",), root)) == [
        "workflow_scripts.a",
        "workflow_scripts.b",
    ]


@pytest.mark.parametrize(
    "words",
    [
        "from workflow_scripts.d import g",
        "from workflow_scripts import d",
        "import workflow_scripts.d.e",
        "from workflow_scripts.d.e import h",
    ],
)
@pytest.mark.parametrize("import_c", ["import workflow_scripts.c", "from ..c import VALUE"])
def test_the_code_of_a_package_is_in_the_closure(tmp_path: Path, words: str, import_c: str):
    """That of its __init__.py, whether the package or a module in it is imported."""
    digests = set()
    for value in (1, 2):
        root = package(tmp_path, a=f"{words}\n")
        init = f"{import_c}\nfrom .f import i\n\ng = {value}\n"
        add_package(root, init, e="h = 1\n", f="i = 1\n")
        closure = find_closure(("workflow_scripts.a",), root)
        reached = {f"workflow_scripts.{name}" for name in ("c", "d", "d.f")}
        assert reached <= closure.keys()
        digests.add(of_a(root))
    assert len(digests) == 2


def test_the_code_of_the_outermost_package_counts(tmp_path: Path):
    digests = set()
    for value in (1, 2):
        root = package(tmp_path, __init__=f"VALUE = {value}\n")
        assert "workflow_scripts" in find_closure(("workflow_scripts.a",), root)
        digests.add(of_a(root))
    assert len(digests) == 2


@pytest.mark.parametrize("text", ["", "# a licence\n", '"""What it is."""\n'])
def test_a_package_without_code_is_not_in_the_closure(tmp_path: Path, text: str):
    root = package(tmp_path, a="from workflow_scripts.d.e import h\n")
    add_package(root, text, e="h = 1\n")
    names = list(find_closure(("workflow_scripts.a",), root))
    assert names == ["workflow_scripts.a", "workflow_scripts.d.e"]


def test_a_folder_that_is_no_package_hides_no_module(tmp_path: Path):
    """As a folder that is left over from another branch."""
    root = package(tmp_path)
    (root / "workflow_scripts/b/__pycache__").mkdir(parents=True)
    names = list(find_closure(("workflow_scripts.a",), root))
    assert names == ["workflow_scripts.a", "workflow_scripts.b"]


def test_what_is_compared_itself_is_not_in_the_closure(tmp_path: Path):
    """A module, or any module of a package."""
    text = "import workflow_scripts.config.schema\nimport workflow_scripts.config.layers\n"
    root = package(tmp_path, a=text, schema="VALUE = 1\n")
    (root / "workflow_scripts/config").mkdir()
    (root / "workflow_scripts/config/layers.py").write_text("VALUE = 1\n")
    assert list(find_closure(("workflow_scripts.a",), root)) == ["workflow_scripts.a"]


def test_what_reports_call_of_the_configuration_is_in_their_closure():
    """But what they import for its types alone."""
    entries = ["tables.table", "figures.figure", "claims.judging", "pages.overview"]
    modules = tuple(f"workflow_scripts.reporting.{name}" for name in entries)
    called = set()
    for name in find_closure(modules):
        if name.startswith("workflow_scripts.reporting."):
            tree = ast.parse((ROOT / f"{name.replace('.', '/')}.py").read_text())
            for node in ast.walk(tree):
                if isinstance(node, ast.ImportFrom) and node.module:
                    called.add(node.module)
    called = {name for name in called if name.startswith("workflow_scripts.config.")}
    assert called and called <= set(find_closure(modules))


@pytest.mark.parametrize(
    "changes",
    [
        {"a": "# why\n" + FILES["a.py"].replace("    return", "    # here\n\n    return")},
        {"b": FILES["b.py"].replace("def g(x):\n", 'def g(x):\n    """Root."""\n')},
        {"a": '"""About a."""\n' + FILES["a.py"]},
        {"c": "VALUE = 4\n"},
    ],
    ids=["comment", "docstring", "module docstring", "a module that is not reached"],
)
def test_what_cannot_change_a_result_does_not_change_the_digest(
    tmp_path: Path, changes: dict[str, str]
):
    assert of_a(package(tmp_path, **changes)) == of_a(package(tmp_path))


@pytest.mark.parametrize(
    ("field", "is_same"),
    [
        ('Field(1, description="Another text.", gt=0)', True),
        ("Field(1, gt=0)", True),
        ('Field(2, description="A text.", gt=0)', False),
        ('Field(1, description="A text.", gt=1)', False),
        ('describe(1, description="Another text.", gt=0)', False),
    ],
)
def test_the_description_of_a_setting_is_documentation(tmp_path: Path, field: str, is_same: bool):
    known = of_a(package(tmp_path, a='x: int = Field(1, description="A text.", gt=0)\n'))
    assert (of_a(package(tmp_path, a=f"x: int = {field}\n")) == known) == is_same


def test_options_count_though_no_module_imports_them(tmp_path: Path):
    root = package(tmp_path, a="def analyse(runs, options): ...\n")
    assert find_options_module("workflow_scripts.a", root) == set()
    (root / "workflow_scripts/options").mkdir()
    (root / "workflow_scripts/options/a.py").write_text("weight: float = 1.0\n")
    assert find_options_module("workflow_scripts.a", root) == {"workflow_scripts.options.a"}
    analysis = Fingerprint({}, (f"{ANALYSES}.mean_scores",))
    assert f"{ANALYSES}.options.mean_scores" in analysis.modules


@pytest.mark.parametrize(
    "changes",
    [
        {"a": FILES["a.py"].replace("+ 1", "+ 2")},
        {"b": FILES["b.py"].replace("sqrt", "exp")},
        {"a": FILES["a.py"] + "\nimport workflow_scripts.c\n"},
        {"b": FILES["b.py"].replace("import math", "import cmath as math")},
        {"b": FILES["b.py"].replace("nats", "bits")},
    ],
    ids=[
        "constant",
        "in an imported module",
        "a new import",
        "what a name means",
        "a string that is no docstring",
    ],
)
def test_what_can_change_a_result_changes_the_digest(tmp_path: Path, changes: dict[str, str]):
    assert of_a(package(tmp_path, **changes)) != of_a(package(tmp_path))


def test_a_module_that_is_not_there_is_named():
    with pytest.raises(
        UserError, match=r"there is no module workflow_scripts\.analyses\.nothing; write it"
    ):
        digest_code(("workflow_scripts.analyses.nothing",))


@pytest.mark.parametrize("package", [ANALYSES, FIGURES, MEASURES])
def test_the_options_of_a_module_are_part_of_its_code(package: str):
    names = list_modules(f"{package}.options")
    assert len(names) > 2
    for name in names:
        closure = find_closure((f"{package}.{name}",))
        assert {f"{package}.{name}", f"{package}.options.{name}"} <= closure.keys()
