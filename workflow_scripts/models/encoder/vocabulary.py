"""Parts of an encoder's WordPiece vocabulary that batches need."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from workflow_scripts.common.errors import UserError
from workflow_scripts.models.encoder.model import PAD

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SPECIAL = ("[PAD]", "[CLS]", "[SEP]", "[MASK]")


@dataclass(frozen=True)
class Vocabulary:
    """Special tokens of a WordPiece tokenizer.

    ordinary: ids that may replace a masked word. continues [V] bool: True for pieces that do not begin a word.
    """

    cls: int
    sep: int
    mask: int
    ordinary: np.ndarray
    continues: np.ndarray


def extract_vocabulary(tokenizer: "Tokenizer", where: Path) -> Vocabulary:
    """Read special tokens and pieces of `tokenizer`. Raises UserError unless it has BERT's special tokens and PAD."""
    ids = {name: tokenizer.token_to_id(name) for name in SPECIAL}
    if None in ids.values() or ids["[PAD]"] != PAD:
        raise UserError(f"{where} is no tokenizer of BERT's kind, with {', '.join(SPECIAL)} and {PAD} for [PAD]")
    size = tokenizer.get_vocab_size()
    ordinary = np.setdiff1d(np.arange(size), list(ids.values()))
    continues = np.array([(tokenizer.id_to_token(token) or "").startswith("##") for token in range(size)])
    return Vocabulary(ids["[CLS]"], ids["[SEP]"], ids["[MASK]"], ordinary, continues)
