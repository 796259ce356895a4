"""Keep the digests of modules next to what Python has compiled of them, by sha256 of the source.

To parse two hundred modules takes half a second, in each call of Snakemake.
"""

import atexit
import hashlib
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_json, write_json

FOLDER = Path(__file__).parent / "__pycache__"
# A cache with more entries keeps only those of the process that writes it.
MAX_ENTRIES = 2000


class DigestCache:
    """Entries by the sha256 of a name and a source.

    written_by: the sha256 of the code that computes the entries; those of other code are not read.
    """

    def __init__(self, file: Path, written_by: str) -> None:
        self.file = file
        self.written_by = written_by
        self.known: dict[str, Any] = {}
        self.used: dict[str, Any] = {}
        self.is_changed = False
        # Where there is none, or it is damaged, everything is computed.
        with suppress(UserError, OSError, TypeError, KeyError, ValueError):
            content = read_json(file)
            if content["written_by"] == written_by:
                self.known = dict(content["entries"])

    def get(self, key: str) -> Any:
        """Return an entry; None if there is none."""
        entry = self.known.get(key)
        if entry is not None:
            self.used[key] = entry
        return entry

    def add(self, key: str, entry: Any) -> None:
        """Add an entry."""
        self.known[key] = entry
        self.used[key] = entry
        self.is_changed = True

    def store(self) -> None:
        """Write the file if there are new entries, where Python may write what it compiles."""
        if not self.is_changed or sys.dont_write_bytecode:
            return
        entries = self.known
        if len(entries) > MAX_ENTRIES:
            entries = self.used
        with suppress(OSError):  # a folder that cannot be written
            write_json(self.file, {"written_by": self.written_by, "entries": entries})


def hash_source(name: str, source: bytes) -> str:
    """Return the key of a module in a cache."""
    return hashlib.sha256(f"{name}\n".encode() + source).hexdigest()


@cache
def open_cache(code: Path) -> DigestCache:
    """Open the cache of what a module computes. It is stored when the process ends."""
    written_by = hashlib.sha256(code.read_bytes()).hexdigest()
    file = FOLDER / f"{code.stem}.{sys.implementation.cache_tag}.json"
    digests = DigestCache(file, written_by)
    atexit.register(digests.store)
    return digests
