"""Read text files and the weights of NLTK's tagger from archives."""

import json
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.sources.archives import read_members

if TYPE_CHECKING:
    from nltk.tag.perceptron import PerceptronTagger

TAGGER = "averaged_perceptron_tagger_eng"


def read_archive_texts(archive: Path, names: Collection[str]) -> dict[str, str]:
    """Read the UTF-8 text of the files called `names`, in any folder of the archive.

    Raises UserError as `read_members` does, and if a file is missing, damaged or not UTF-8.
    """
    try:
        found = {name: content.decode("utf-8") for name, content in read_members(archive, set(names)).items()}
    except UnicodeDecodeError as error:
        raise UserError(f"{archive}: a file in it is not UTF-8 text; fetch it again") from error
    if missing := sorted(set(names) - set(found)):
        raise UserError(f"{archive} does not contain {missing[0]}; fetch it again")
    return found


def load_tagger(archive: Path) -> "PerceptronTagger":
    """Build NLTK's averaged perceptron tagger (Penn Treebank tags) from the JSON files of its zip.

    Raises UserError as `read_archive_texts` does, and for malformed weights.
    """
    from nltk.tag.perceptron import PerceptronTagger

    parts = [f"{TAGGER}.{part}.json" for part in ("weights", "tagdict", "classes")]
    texts = read_archive_texts(archive, parts)
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
