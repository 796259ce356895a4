"""Joint byte-pair encoding of two languages (Sennrich et al. 2016) for tokenised text."""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow
    from tokenizers import Tokenizer

END = "</w>"  # marks a piece that ends a token
UNKNOWN = "<unk>"


def learn_byte_pairs(texts: Iterable[str], merges: int, characters: set[str], last: set[str]) -> "Tokenizer":
    """Learn up to `merges` merges of the most frequent pair, which must occur at least twice, like `subword-nmt`.

    characters, last: all characters, and all that end a token; they are the initial pieces.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    # As special tokens, the initial pieces get ids in this order. Otherwise the order would change with each training,
    # and so would the choice between pairs of equal frequency.
    ends = sorted(character + END for character in last)
    trainer = trainers.BpeTrainer(
        vocab_size=1 + len(characters) + len(ends) + merges,
        min_frequency=2,
        special_tokens=[UNKNOWN, *ends],
        initial_alphabet=sorted(characters),
        end_of_word_suffix=END,
        show_progress=False,
    )
    learner = Tokenizer(models.BPE(unk_token=UNKNOWN, end_of_word_suffix=END))
    learner.pre_tokenizer = pre_tokenizers.Split(" ", "removed")
    learner.train_from_iterator(texts, trainer)
    model = json.loads(learner.to_str())["model"]
    found = [tuple(pair) for pair in model["merges"]]
    tokenizer = Tokenizer(models.BPE(model["vocab"], found, unk_token=UNKNOWN, end_of_word_suffix=END))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "removed")
    return tokenizer


def format_pieces(tokenizer: "Tokenizer") -> list[str]:
    """Return the written form of each piece, by id, as in `subword-nmt`: `@@` follows a piece that ends no token."""
    vocabulary = tokenizer.get_vocab()
    pieces = sorted(vocabulary, key=vocabulary.__getitem__)
    return [p if p == UNKNOWN else p.removesuffix(END) if p.endswith(END) else f"{p}@@" for p in pieces]


def encode_texts(tokenizer: "Tokenizer", texts: list[str]) -> "pyarrow.ListArray":
    """Return the piece ids of each text, as 32-bit integers."""
    import pyarrow

    found = [encoding.ids for encoding in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]
    return pyarrow.array(found, pyarrow.list_(pyarrow.int32()))
