"""What the synonyms need from pinned archives: stop words and the weights of the tagger. Nothing is ever extracted."""

import json
import lzma
import tarfile
import zipfile
from collections.abc import Collection
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from workflow_scripts.errors import UserError

if TYPE_CHECKING:
    from nltk.tag.perceptron import PerceptronTagger

LARGEST = 64 * 1024 * 1024  # bytes of one member; the largest real one, data.noun, has 15 million
TAGGER = "averaged_perceptron_tagger_eng"


def read_members(archive: Path, names: Collection[str]) -> dict[str, str]:
    """UTF-8 text of the regular files called `names` in a .zip or .tar.* archive, whatever folder they lie in.

    Only the last part of a member's path counts, and nothing is written, so that a path cannot do harm. Raises
    UserError when the archive is broken, or a member is missing, doubled, larger than `LARGEST` or not UTF-8.
    """
    try:
        found = _zip_members(archive, names) if zipfile.is_zipfile(archive) else _tar_members(archive, names)
    except FileNotFoundError as error:
        raise UserError(f"{archive} does not exist; get it with the fetch command") from error
    except (OSError, EOFError, zipfile.BadZipFile, tarfile.TarError, lzma.LZMAError) as error:
        raise UserError(f"{archive}: not a readable .zip or .tar archive; fetch it again") from error
    missing = sorted(set(names) - set(found))
    if missing:
        raise UserError(f"{archive} holds no file {missing[0]}; fetch it again")
    try:
        return {name: content.decode("utf-8") for name, content in found.items()}
    except UnicodeDecodeError as error:
        raise UserError(f"{archive}: a file in it is not UTF-8 text; fetch it again") from error


def _zip_members(archive: Path, names: Collection[str]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    with zipfile.ZipFile(archive) as opened:
        for member in opened.infolist():
            name = PurePosixPath(member.filename).name
            if name in names and not member.is_dir():
                _check(archive, name, member.file_size, found)
                found[name] = opened.read(member)
    return found


def _tar_members(archive: Path, names: Collection[str]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    with tarfile.open(archive) as opened:
        for member in opened:
            name = PurePosixPath(member.name).name
            if name in names and member.isfile():
                _check(archive, name, member.size, found)
                found[name] = opened.extractfile(member).read()
    return found


def _check(archive: Path, name: str, size: int, found: Collection[str]) -> None:
    if name in found:
        raise UserError(f"{archive} holds two files {name}; fetch it again")
    if size > LARGEST:
        raise UserError(f"{archive}: {name} has {size} bytes, more than the {LARGEST} that are read; fetch it again")


def stop_words(archive: Path) -> frozenset[str]:
    """NLTK's English stop words, lower case, from `stopwords.zip`. Raises UserError as `read_members` does."""
    return frozenset(read_members(archive, ["english"])["english"].split())


def tagger(archive: Path) -> "PerceptronTagger":
    """NLTK's averaged perceptron tagger (Penn Treebank tags), made from the JSON files of its zip.

    The folder inside may be called as it likes. Raises UserError as `read_members` does, and for malformed weights.
    """
    from nltk.tag.perceptron import PerceptronTagger

    parts = [f"{TAGGER}.{part}.json" for part in ("weights", "tagdict", "classes")]
    texts = read_members(archive, parts)
    loaded: list[Any] = []
    for part in parts:
        try:
            loaded.append(json.loads(texts[part]))
        except (json.JSONDecodeError, RecursionError) as error:
            raise UserError(f"{archive}: {part} is not valid JSON; fetch it again") from error
    weights, tag_of_word, classes = loaded
    if not (isinstance(weights, dict) and isinstance(tag_of_word, dict) and isinstance(classes, list) and classes):
        raise UserError(f"{archive}: not the weights, tag dictionary and classes of a tagger; fetch it again")
    made = PerceptronTagger(load=False)
    made.decode_json_params((weights, tag_of_word, classes))
    return made
