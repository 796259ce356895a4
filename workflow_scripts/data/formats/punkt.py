"""NLTK's Punkt sentence splitter, from its pinned archive."""

import tempfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from workflow_scripts.data.sources.archives import iterate_archive

if TYPE_CHECKING:
    from nltk.tokenize.punkt import PunktTokenizer

SOURCE = "nltk/punkt_tab_english.tar.gz"
ENGLISH = "punkt_tab/english/"


def load_sentence_splitter(archive: Path) -> "PunktTokenizer":
    """Load the English splitter; its `tokenize` splits a text into sentences."""
    import nltk
    from nltk.tokenize.punkt import PunktTokenizer

    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "tokenizers" / ENGLISH
        target.mkdir(parents=True)
        for name, content in iterate_archive(archive):
            if name.startswith(ENGLISH):  # upstream's archive has all languages
                (target / PurePosixPath(name).name).write_bytes(content.read())
        nltk.data.path.insert(0, folder)
        try:
            return PunktTokenizer("english")
        finally:
            nltk.data.path.remove(folder)
