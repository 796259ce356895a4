"""Archives of upstream's forms, for tests."""

import io
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path


def pack(
    path: Path, members: dict[str, str | bytes] | Iterable[tuple[str | zipfile.ZipInfo, bytes]]
) -> Path:
    """Write a zip or tar archive, after the ending of its path: name -> content."""
    pairs = members.items() if isinstance(members, dict) else members
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in pairs:
                archive.writestr(name, content)
        return path
    compression = {".tgz": "gz", ".tar": ""}.get(path.suffix, path.suffix[1:])
    with tarfile.open(path, f"w:{compression}") as archive:
        for name, content in pairs:
            encoded = content.encode() if isinstance(content, str) else content
            member = tarfile.TarInfo(name)
            member.size = len(encoded)
            archive.addfile(member, io.BytesIO(encoded))
    return path
