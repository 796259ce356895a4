"""Source sentences in the word pieces of a pre-trained encoder, which has its tokenizer.json next to its weights."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from workflow_scripts.common.errors import UserError
from workflow_scripts.models.hugging_face import load_tokenizer

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# RoBERTa's first tokens. In our ids, <pad> is before <s>.
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]


@dataclass(frozen=True)
class Pieces:
    """A tokenizer whose ids are ours after the exchange of 0 and 1."""

    tokenizer: "Tokenizer"

    def list_pieces(self) -> list[str]:
        """Return the pieces in the order of our ids."""
        found = [self.tokenizer.id_to_token(index) for index in range(self.tokenizer.get_vocab_size())]
        return [found[1], found[0], *found[2:]]

    def tokenise(self, table: pa.Table) -> pa.Table:
        """Replace the column `source_ids` by the pieces of `source`, without special tokens."""
        encoded = self.tokenizer.encode_batch_fast(table["source"].to_pylist(), add_special_tokens=False)
        lists = [np.array(sentence.ids, np.int64) for sentence in encoded]
        offsets = np.cumsum([0, *map(len, lists)], dtype=np.int32)
        ids = np.concatenate(lists)
        column = pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.where(ids < 2, 1 - ids, ids)))
        return table.set_column(table.column_names.index("source_ids"), "source_ids", column)


def read_pieces(folder: Path) -> Pieces:
    """Read the tokenizer of a model's folder. Raises UserError if it is missing or is not RoBERTa's."""
    tokenizer = load_tokenizer(folder)
    if (found := [tokenizer.id_to_token(index) for index in range(len(SPECIAL))]) != SPECIAL:
        raise UserError(f"{folder / 'tokenizer.json'} begins with {found}, not {SPECIAL}; give a RoBERTa model")
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return Pieces(tokenizer)
