"""Find files of catalogue/ and papers/ that nothing reads, such as a plan with a misspelt name.

Without this check such a file would silently have no effect.
"""

from collections.abc import Collection, Iterator
from pathlib import Path

from workflow_scripts.common.files import list_files
from workflow_scripts.common.validation import suggest_name
from workflow_scripts.config.analysis_plan import FIRST_PLAN, LATER_PLANS

PAPER_FILES = ("experiments.yaml", "displays.yaml", "claims.yaml", "published.csv", FIRST_PLAN)
CAPTIONS = "captions"
CATALOGUE_FILES = ("metrics.yaml", "scales.yaml")
FOLDERS_OF_ENTRIES = ("methods", "tasks")
SCHEMAS = "schemas"
# For people, and tables of pilots and costs, which are named by those who read them.
FREE_SUFFIXES = (".csv", ".md", ".pdf", ".png", ".svg", ".jpg")
BACKUP_SUFFIXES = ("~", ".bak", ".orig", ".rej", ".swp", ".tmp")
OF_SYSTEMS = ("__pycache__", "Thumbs.db", "desktop.ini")


def find_unread_catalogue_files(root: Path) -> Iterator[str]:
    """Yield a sentence for each file of catalogue/ that nothing reads."""
    folder = root / "catalogue"
    yield from _find_unread(folder, CATALOGUE_FILES, (*FOLDERS_OF_ENTRIES, SCHEMAS))
    for name in FOLDERS_OF_ENTRIES:
        yield from _find_unread_of_suffix(folder / name, ".yaml")


def find_unread_papers(root: Path) -> Iterator[str]:
    """Yield a sentence for each folder of papers/ with files, but without its experiments."""
    for folder in list_files(root, "papers/*"):
        if not folder.is_dir() or (folder / "experiments.yaml").exists():
            continue
        files = [path for path in _list_visible(folder) if path.is_file()]
        if any(file.suffix not in FREE_SUFFIXES for file in files):
            missing = "nothing reads its files without experiments.yaml"
            yield f"{folder}: {missing}; write it, or remove the folder"


def find_unread_paper_files(folder: Path, displays: Collection[str] | None) -> Iterator[str]:
    """Yield a sentence for each file of a paper that nothing reads.

    displays: those of the paper, which may have captions; None if they are not known.
    """
    yield from _find_unread(folder, PAPER_FILES, (LATER_PLANS, CAPTIONS))
    yield from _find_unread_of_suffix(folder / LATER_PLANS, ".yaml")
    yield from _find_unread_of_suffix(folder / CAPTIONS, ".rst")
    for file in _list_visible(folder / CAPTIONS):
        if file.suffix == ".rst" and displays is not None and file.stem not in displays:
            suggestion = suggest_name(file.stem, displays)
            yield f"{file}: no display '{file.stem}' in displays.yaml; {suggestion}"


def _find_unread(folder: Path, files: Collection[str], folders: Collection[str]) -> Iterator[str]:
    """Yield a sentence for each file and folder whose name is not among these."""
    for path in _list_visible(folder):
        known = folders if path.is_dir() else files
        if path.name not in known and not (path.is_file() and path.suffix in FREE_SUFFIXES):
            yield f"{path}: nothing reads it; {suggest_name(path.name, known)}"


def _find_unread_of_suffix(folder: Path, suffix: str) -> Iterator[str]:
    """Yield a sentence for each file of a folder with another suffix, and for each folder in it."""
    for path in _list_visible(folder):
        if path.is_dir():
            yield f"{path}: nothing reads this folder; move its files up"
        elif path.suffix not in (suffix, *FREE_SUFFIXES):
            yield f"{path}: nothing reads it; did you mean '{path.stem}{suffix}'?"


def _list_visible(folder: Path) -> list[Path]:
    """List the files and folders in a folder without hidden ones and backups of editors."""
    return [path for path in list_files(folder) if not _is_of_editor(path.name)]


def _is_of_editor(name: str) -> bool:
    """Whether an editor or the operating system has written a file of this name."""
    return name in OF_SYSTEMS or name.startswith((".", "#")) or name.endswith(BACKUP_SUFFIXES)
