"""Check that the packages of a lock are installed in the .venv of the Python that runs this file.

    .venv/bin/python -I envs/check_venv.py .venv/made-from.lock

Exits with 1 and the reason in one line if one is missing. Imports none of them: this is a part of
each ./reproduce.
"""

import re
import sys
import sysconfig
from pathlib import Path


def normalise_name(name: str) -> str:
    """Return the name of a package as its folder in site-packages has it."""
    return re.sub(r"[-_.]+", "_", name).lower()


def find_missing(made_from: Path) -> list[str]:
    """Return the lines `<package>==<version>` of a file that are not installed.

    Only packages in this Python's own folder count.
    """
    installed = set()
    packages = Path(sysconfig.get_path("purelib"))
    # <name>-<version>.dist-info; pip before 23.1 installs a package without a wheel as
    # <name>-<version>-py3.11.egg-info.
    for folder in (*packages.glob("*.dist-info"), *packages.glob("*.egg-info")):
        name, version = folder.stem.split("-")[:2]
        installed.add((normalise_name(name), version.split("+")[0]))
    missing = []
    for line in made_from.read_text(encoding="utf-8").splitlines():
        name, _, version = line.partition("==")
        if version and (normalise_name(name), version) not in installed:
            missing.append(line)
    return missing


def main() -> None:
    """Check the packages of the file that the command names."""
    if sys.prefix == sys.base_prefix:
        sys.exit("its Python is not one of a virtual environment")
    missing = find_missing(Path(sys.argv[1]))
    if missing:
        more = ""
        if len(missing) > 1:
            more = f" and {len(missing) - 1} more"
        sys.exit(f"{missing[0]}{more} not installed")


main()
