"""NLTK's Punkt sentence splitter, from its pinned archive."""

import tarfile
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from workflow_scripts.common.errors import UserError

if TYPE_CHECKING:
    from nltk.tokenize.punkt import PunktTokenizer

SOURCE, ENGLISH = "nltk/punkt_tab_english.tar.gz", "punkt_tab/english/"


def load_sentence_splitter(archive: Path) -> "PunktTokenizer":
    """Load the English splitter; its `tokenize` splits a text into sentences. Raises UserError for a wrong archive."""
    import nltk
    from nltk.tokenize.punkt import PunktTokenizer

    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "tokenizers"
        try:
            if zipfile.is_zipfile(archive):  # upstream's archive of all languages
                with zipfile.ZipFile(archive) as content:
                    content.extractall(target, [name for name in content.namelist() if name.startswith(ENGLISH)])
            else:
                with tarfile.open(archive) as content:
                    content.extractall(target, filter="data")
        except (tarfile.TarError, zipfile.BadZipFile, zlib.error, OSError, EOFError) as error:
            reason = str(error).partition("\n")[0]
            raise UserError(f"{archive} cannot be read ({reason}); fetch it again") from error
        nltk.data.path.insert(0, folder)
        try:
            return PunktTokenizer("english")
        except LookupError:
            raise UserError(f"{archive} holds no English sentence splitter; fetch it again") from None
        finally:
            nltk.data.path.remove(folder)
