"""NLTK's Punkt sentence splitter, from its pinned archive."""

import tempfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.sources.archives import iterate_archive, report_broken

if TYPE_CHECKING:
    from nltk.tokenize.punkt import PunktTokenizer

SOURCE, ENGLISH = "nltk/punkt_tab_english.tar.gz", "punkt_tab/english/"


def load_sentence_splitter(archive: Path) -> "PunktTokenizer":
    """Load the English splitter; its `tokenize` splits a text into sentences. Raises UserError for a wrong archive."""
    import nltk
    from nltk.tokenize.punkt import PunktTokenizer

    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "tokenizers" / ENGLISH
        target.mkdir(parents=True)
        with report_broken(archive):
            for name, content in iterate_archive(archive):
                if name.startswith(ENGLISH):  # upstream's archive has all languages
                    (target / PurePosixPath(name).name).write_bytes(content.read())
        nltk.data.path.insert(0, folder)
        try:
            return PunktTokenizer("english")
        except LookupError:
            raise UserError(f"{archive} holds no English sentence splitter; fetch it again") from None
        finally:
            nltk.data.path.remove(folder)
