"""Names and words follow the language rules: verbs for functions, one name for one thing, no
private words.
"""

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "workflow_scripts"
MODULES = sorted(PACKAGE.rglob("*.py"))

# First words of function names.
VERBS = """
add advance align allow analyse answer append applies apply assign attend audit average bootstrap bucket build can check
choose clean code collect combine compare compile complete compute copy count decide decode describe detokenise digest
download draw drop embed encode enter escape estimate evaluate expand explain export extract fetch fill find
fingerprint finish format forward generate get group has hash hide import infer intervene is iterate join judge keep
learn limit list load locate lock log look make map mark mask match matches measure merge name normalise observe open
pad pair parse pause perturb place plan pool predict prepare print project rank read rebuild receive recompute record reduce
refuse remap remove render repeat replace report require rescore resolve restore resume run sample save scale scatter score search
select send set share shorten shuffle split spread stack start stop store suggest sum summarise tag to tokenise train
try unpack update use validate verify weigh write
"""
# Interfaces that other code calls by these names, and formulas that are known by their names.
NOUNS = {"main"}
# Classes whose methods are called by what they return, as pandas' are.
NOUN_METHODS = {
    "AnalysisFolder",
    "DataFolder",
    "DisplayFiles",
    "DownloadFolder",
    "ExportFolder",
    "ReportFolder",
    "ReleaseFolder",
    "Results",
    "ResultsFolder",
    "RunFolder",
    "ScaleFolder",
    "SpecFolder",
}
# Methods that a library calls by these names.
LIBRARY_METHODS = {"_init_weights"}
# Folders in which private and inner functions are named by verbs, too.
ALL_FUNCTIONS = (
    "commands",
    "common",
    "config",
    "data",
    "evaluation",
    "interventions",
    "models",
    "objectives",
    "provenance",
    "reporting",
    "tasks",
    "training",
    "workflow",
)
# Names that several modules have, each in its role.
ENTRY_POINTS = {
    "add_arguments",
    "analyse",
    "build",
    "count_training_examples",
    "draw",
    "load_model",
    "main",
    "set_up_training",
    "score_predictions",
    "predict",
    "prepare",
}
ENTRY_POINTS |= {"score", "score_outputs", "score_split"}
CLASSES_BY_ROLE = {"Settings", "Options", "Batch", "Kind"}
ROLES = {
    "__init__",
    "__main__",
    "settings",
    "model",
    "training_setup",
    "scoring",
    "batches",
    "loss",
    "decoding",
    "rescoring",
}
ROLES |= {"objective", "vocabulary", "checkpoint", "kind"}


def public_definitions(module: Path) -> Iterator[tuple[str, ast.AST, ast.ClassDef | None]]:
    """Yield (name, node, class) for public functions, classes and methods."""
    for node in ast.parse(module.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node.name, node, None
        if isinstance(node, ast.ClassDef):
            for member in node.body:
                if isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
                    yield member.name, member, node


def is_called_as_a_function(node: ast.FunctionDef) -> bool:
    decorators = {
        ast.unparse(decorator).split("(")[0].split(".")[-1] for decorator in node.decorator_list
    }
    return not decorators & {
        "property",
        "cached_property",
        "field_validator",
        "model_validator",
        "setter",
        "overload",
    }


def overrides_a_library(owner: ast.ClassDef | None) -> bool:
    """Methods of these classes have the names that a library calls."""
    bases = {ast.unparse(base).split(".")[-1] for base in owner.bases} if owner else set()
    return bool(
        bases
        & {
            "LogitsProcessor",
            "HTMLParser",
            "Formatter",
            "Handler",
            "TaggerI",
            "Protocol",
            "RawIOBase",
        }
    )


def test_functions_are_named_by_verbs():
    wrong = [
        f"{module.relative_to(ROOT)}:{node.lineno}: {name}"
        for module in MODULES
        for name, node, owner in public_definitions(module)
        if isinstance(node, ast.FunctionDef)
        and is_called_as_a_function(node)
        and not overrides_a_library(owner)
        and not (owner and owner.name in NOUN_METHODS)
        and not is_named_by_a_verb(name)
    ]
    assert not wrong, "\n".join(wrong)


def is_named_by_a_verb(name: str) -> bool:
    words = name.strip("_").split("_")
    return words[0] in VERBS.split() or name in NOUNS or name.endswith(("_folder", "_file"))


def test_private_and_inner_functions_are_named_by_verbs():
    wrong = []
    for module in MODULES:
        if module.relative_to(PACKAGE).parts[0] not in ALL_FUNCTIONS:
            continue
        tree = ast.parse(module.read_text())
        classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        owner_of = {member: owner for owner in classes for member in owner.body}
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.FunctionDef)
                and is_called_as_a_function(node)
                and not overrides_a_library(owner_of.get(node))
                and not node.name.startswith("__")
                and node.name not in LIBRARY_METHODS
                and getattr(owner_of.get(node), "name", "") not in NOUN_METHODS
                and not is_named_by_a_verb(node.name)
            ):
                wrong.append(f"{module.relative_to(ROOT)}:{node.lineno}: {node.name}")
    assert not wrong, "\n".join(wrong)


def test_no_two_modules_define_the_same_public_name():
    places = defaultdict(list)
    for module in MODULES:
        for name, node, owner in public_definitions(module):
            if owner is None and name not in ENTRY_POINTS | CLASSES_BY_ROLE:
                places[name].append(f"{module.relative_to(PACKAGE)}:{node.lineno}")
    twice = [f"{name}: {', '.join(found)}" for name, found in places.items() if len(found) > 1]
    assert not twice, "\n".join(twice)


def test_no_two_modules_have_the_same_name():
    """Except modules of one role, and of one thing: data and stand-in, analysis, figure and
    options.
    """
    places = defaultdict(list)
    for module in MODULES:
        if module.stem not in ROLES and module.parent.name not in (
            "commands",
            "figures",
            "options",
            "stand_ins",
        ):
            places[module.stem].append(str(module.relative_to(PACKAGE)))
    twice = [", ".join(found) for found in places.values() if len(found) > 1]
    assert not twice, "\n".join(twice)


# Words that have another meaning here than in the field, or that a reader has to read twice.
PRIVATE_WORDS = re.compile(
    r"""\b(
    anew | beside | behind | mend(s|ed|ing)? | stands?(?!-in) | stood | lies?(?!\ (above|below|between|within))
    | held\ against | go(es)?\ on | made\ again | made[- ]up | reckon\w* | likeliest | for\ want\ of | hangs?\ (on|from)
    | by\ the\ alphabet | ledger | thereby | where(of|from|by) | bears? | so\ many | as\ it\ stands | such\ a\ one
    | what\ came\ out | the\ givens? | those\ of\ it | moved\ aside | taken\ over | nobody | keeps?\ to | came\ out
    )\b""",
    re.VERBOSE | re.IGNORECASE,
)
# Files that quote others, or whose content is text in these words.
QUOTES = {
    "tests/test_language.py",
    "tests/slurm/accounting.py",  # an account of the system
    "tests/slurm/test_accounting.py",
    "profiles/plugins/snakemake_logger_plugin_terminal/__init__.py",  # SLURM's messages
    "tests/reporting/test_carma.py",  # statements of claims
    "tests/workflow/test_crate.py",  # the name of a claim
    "workflow_scripts/data/stand_ins/wordnet.py",
    "workflow_scripts/evaluation/compounds.py",  # prepositions
}


def prose_of_python(file: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, text) for comments and for strings that are sentences."""
    source = file.read_text()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.value.count(" ") > 1
        ):
            yield node.lineno, node.value


def prose_of_text(file: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, text): all lines of Markdown, else comments."""
    for number, line in enumerate(file.read_text().splitlines(), 1):
        if file.suffix == ".md":
            yield number, line
        elif "#" in line:
            yield number, line[line.index("#") :]


def tracked(*patterns: str) -> list[Path]:
    return sorted({path for pattern in patterns for path in ROOT.glob(pattern) if path.is_file()})


PYTHON = tracked(
    "workflow_scripts/**/*.py", "profiles/**/*.py", "tests/**/*.py", "envs/*.py", "benchmarks/*.py"
)
TEXT = tracked(
    *(
        "*.md",
        "docs/**/*.md",
        "papers/*/NOTES.md",
        "benchmarks/*.md",
        "papers/*/[cde]*.yaml",
        "catalogue/**/*.yaml",
    ),
    *(
        "rules/*.smk",
        "Snakefile",
        "reproduce",
        "run_tests",
        ".ci/*",
        "envs/make_venv",
        "config.yaml",
        "profiles/**/*.yaml",
    ),
)


@pytest.mark.parametrize(
    ("files", "prose"), [(PYTHON, prose_of_python), (TEXT, prose_of_text)], ids=["python", "text"]
)
def test_no_private_words(files, prose):
    found = [
        f"{file.relative_to(ROOT)}:{line}: {match.group()}"
        for file in files
        if str(file.relative_to(ROOT)) not in QUOTES
        for line, text in prose(file)
        for match in PRIVATE_WORDS.finditer(text)
    ]
    assert not found, f"{len(found)} private words\n" + "\n".join(found)


def test_every_term_of_the_glossary_is_used():
    terms = re.findall(
        r"^\| ([a-z][\w -]*) \|", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE
    )
    terms.remove("word")
    assert terms
    text = "\n".join(
        file.read_text() for file in [*PYTHON, *TEXT] if file.name != "glossary.md"
    ).lower()
    assert [term for term in terms if term not in text] == []
