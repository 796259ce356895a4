"""Writing so that a reader never meets half a file, and reading back."""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from workflow_scripts.common.errors import UserError

MEND = "if ./reproduce made it, delete the file and make it again; if it is yours, correct it"


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a free path beside `path`; what the block makes there (file or folder) replaces `path` if it ends well."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        yield scratch / path.name
        if (scratch / path.name).is_dir() and path.exists():
            # A folder cannot be renamed over a full one: move the old one out of the way first.
            os.replace(path, scratch / "old")
        os.replace(scratch / path.name, path)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def write_json(path: str | Path, content: Any) -> None:
    """Write `content` as JSON with sorted keys, atomically."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def read_json(path: str | Path) -> Any:
    """Read JSON. Raises UserError with the path when the file is missing or broken."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise missing(path) from error
    except json.JSONDecodeError as error:
        raise UserError(f"{path}:{error.lineno}: not valid JSON ({error.msg}); {MEND}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text; {MEND}") from error


def missing(path: str | Path) -> UserError:
    """The error that a file does not exist: ./reproduce makes what stands under results/, and nothing else."""
    made = Path(path).parts[0] == "results"
    return UserError(f"{path} does not exist; {f'make it with ./reproduce {path}' if made else 'give one that does'}")


def sha256_file(path: str | Path) -> str:
    """Hex sha256 of the file's bytes."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sha256_files(folder: str | Path) -> dict[str, str]:
    """sha256 of every file under a folder, by its path inside."""
    paths = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): sha256_file(path) for path in paths}


def check_whole(path: Path) -> None:
    """Raise UserError when a file is not what the manifest beside it (a JSON file with `files`) says was written."""
    for name in ("evaluation.json", "intervention.json", "analysis.json", "run.json"):
        manifest = path.with_name(name)
        if manifest.exists() and path.exists():
            expected = read_json(manifest).get("files", {}).get(path.name)
            if expected and sha256_file(path) != expected:
                raise UserError(f"{path} is not what was written; delete {path.parent} and run ./reproduce again")
