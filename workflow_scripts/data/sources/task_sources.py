"""Source files of one task, by source name: upstream's, or stand-in files of the same formats."""

import io
import tarfile
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from pydantic import Field

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import StrictModel

TarMode = Literal["w", "w:gz", "w:bz2"]


class DataOptions(StrictModel, ABC):
    """Options of every data set, whose module states its splits.

    `from: stand_in` first writes small stand-in files in upstream's format.
    """

    origin: Literal["upstream", "stand_in"] = Field("upstream", alias="from")

    @abstractmethod
    def list_splits(self) -> list[str]:
        """Return the names of the splits that `prepare` makes with these options, in any order."""

    def make_error(self, problem: str) -> UserError:
        """Return the error that names these options and a problem of them."""
        return UserError(f"options of {type(self).__module__}: {problem}")

    @contextmanager
    def open_sources(
        self,
        sources: dict[str, Path],
        write_stand_in: Callable[..., dict[str, Path]],
        *arguments: object,
    ) -> Iterator[dict[str, Path]]:
        """Yield the files to read: `sources`, or the stand-in ones that `write_stand_in` writes.

        It is called with a folder, which is deleted at the end of the block, and `arguments`.
        """
        with tempfile.TemporaryDirectory() as folder:
            files = sources
            if self.origin == "stand_in":
                files = write_stand_in(Path(folder), *arguments)
            yield files

    def find_source(self, sources: dict[str, Path], *names: str) -> Path:
        """Return the first of these sources that the task has. Raises UserError if it has none."""
        for name in names:
            if name in sources:
                return sources[name]
        raise self.make_error(
            f"from: upstream needs the source {' or '.join(names)}; name it in the task's sources"
        )


def write_text_lines(folder: Path, files: Mapping[str, Iterable[str]]) -> dict[str, Path]:
    """Write stand-in text files: source name -> lines. Returns the paths by source name."""
    paths = {name: folder / Path(name).name for name in files}
    for name, lines in files.items():
        paths[name].write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return paths


def write_tar(archive: Path, mode: TarMode, files: dict[str, bytes]) -> None:
    """Write an archive of stand-in files: name -> content."""
    with tarfile.open(archive, mode) as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
