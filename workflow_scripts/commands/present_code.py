"""Read the code of the package as a job begins, for the fingerprint in its record.

An edit while the job computes is then not taken for the code that has computed its result.
"""

from contextlib import suppress

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.system import PROJECT
from workflow_scripts.provenance.code import PACKAGE, find_closure


def read_present_code() -> None:
    """Compute the digests of all modules, which `find_closure` remembers."""
    names = list_all_modules()
    try:
        find_closure(names)
    except (SyntaxError, UserError):  # of a module that is being edited, which the job may not need
        for name in names:
            with suppress(SyntaxError, UserError):
                find_closure((name,))


def list_all_modules() -> tuple[str, ...]:
    """List the names of all modules of the package."""
    names = []
    for file in sorted((PROJECT / PACKAGE).rglob("*.py")):
        parts = file.relative_to(PROJECT).with_suffix("").parts
        names.append(".".join(parts).removesuffix(".__init__"))
    return tuple(names)
