"""What a trained model knows of single words: which it has no embedding for, and their codes."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.result_folders import DataFolder
from workflow_scripts.data.prepared import read_vocabularies
from workflow_scripts.tasks.base import Checkpoint


class WordCode(NamedTuple):
    """A word of a text, and the code of the codebook that the model gives it.

    The code is None for a word that the model does not know.
    """

    word: str
    code: int | None


def find_unknown_words(checkpoint: Checkpoint, texts: Sequence) -> list[list[str]]:
    """Return the words of each input of `predict` that the training data do not have.

    A model with a tokenizer spells such words, and has none.
    """
    files = DataFolder(checkpoint.folder)  # a checkpoint has the files of its data's words
    if files.tokenizer.exists() or not files.vocabulary.exists():
        return [[] for _ in texts]
    known = set(read_vocabularies(checkpoint.folder)["source"])
    return [[word for word in text.split(" ") if word not in known] for text in texts]


def assign_word_codes(checkpoint: Checkpoint, model: Any, texts: Sequence) -> list[list[WordCode]]:
    """Return the code of each word of the inputs of `predict`, which the encoder gives it.

    Raises UserError for a model that gives words no code.
    """
    if not hasattr(model, "assign_codes"):
        raise UserError(
            f"{checkpoint.name} gives words no code of a codebook; take a SQ-Transformer"
        )
    words = read_vocabularies(checkpoint.folder)["source"]
    device = next(model.parameters()).device
    with torch.no_grad():
        codes = model.assign_codes("source", torch.arange(len(words), device=device)).tolist()
    code_of = dict(zip(words, codes, strict=True))
    return [[WordCode(word, code_of.get(word)) for word in text.split(" ")] for text in texts]
