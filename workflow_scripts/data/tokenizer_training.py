"""Small tokenizers for models that are trained from scratch, in the format of Hugging Face `tokenizers`.

Both cut a text into words with the space before them, numbers, and runs of other marks, and then each of these into
pieces. Nothing is added before or after the text. Offsets count characters; that of a piece at the beginning of a word
includes the space before it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SPECIAL_TOKENS = ["<bos>", "<eos>", "<pad>", "<unk>"]  # their ids are 0 to 3
UNKNOWN = SPECIAL_TOKENS.index("<unk>")
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
# Words, numbers, other marks, each with the space before it, as in GPT-2's byte-level tokenizer.
PIECE_OF_TEXT = r"▁?\p{L}+|▁?\p{N}+|▁?[^▁\p{L}\p{N}]+|▁+"
# A score below that of every piece: a byte only stands for a character that no piece has.
BYTE_SCORE = -100.0


def train(kind: str, vocabulary_size: int, texts: Iterable[str], words: Counter[str]) -> "Tokenizer":
    """A `bpe` or `unigram` tokenizer with `vocabulary_size` tokens, the special ones and 256 bytes among them.

    words: how often each is to stand bare, without a space before it, beside the texts.
    """
    return {"bpe": byte_pairs, "unigram": unigram}[kind](vocabulary_size, _with_bare(texts, words))


def _with_bare(texts: Iterable[str], words: Counter[str]) -> Iterator[str]:
    yield from texts
    for word in sorted(words):
        # Tabs part words without giving them the space that would make them other tokens.
        yield "\t".join([word] * words[word])


def byte_pairs(vocabulary_size: int, texts: Iterable[str]) -> "Tokenizer":
    """Byte-level byte-pair encoding as GPT-2's: `Ġ` stands for the space before a word."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        special_tokens=SPECIAL_TOKENS,
        # Sorted: the library gives the 256 characters in another order each time.
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def unigram(vocabulary_size: int, texts: Iterable[str]) -> "Tokenizer":
    """Unigram language model as Gemma's: `▁` stands for a space; characters without a piece become bytes."""
    import json

    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    def empty(model: models.Unigram) -> Tokenizer:
        tokenizer = Tokenizer(model)
        tokenizer.normalizer = normalizers.Replace(" ", "▁")
        tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(PIECE_OF_TEXT), "isolated")
        tokenizer.decoder = decoders.Sequence(
            [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
        )  # fmt: skip
        return tokenizer

    trained = empty(models.Unigram())
    trainer = trainers.UnigramTrainer(
        vocab_size=vocabulary_size - len(BYTES),
        special_tokens=SPECIAL_TOKENS,
        unk_token=SPECIAL_TOKENS[UNKNOWN],
        shrinking_factor=0.5,  # of the pieces per round; 0.75, the usual value, takes twice as long
        show_progress=False,
    )
    trained.train_from_iterator(texts, trainer)
    pieces = [(piece, score) for piece, score in json.loads(trained.to_str())["model"]["vocab"]]
    special, pieces = pieces[: len(SPECIAL_TOKENS)], _joined_spaces(pieces[len(SPECIAL_TOKENS) :])
    vocabulary = [*special, *((byte, BYTE_SCORE) for byte in BYTES), *pieces]
    tokenizer = empty(models.Unigram(vocabulary, UNKNOWN, byte_fallback=True))
    tokenizer.add_special_tokens(SPECIAL_TOKENS)
    return tokenizer


def _joined_spaces(pieces: list[tuple[str, float]]) -> list[tuple[str, float]]:
    """As many pieces, in which a space goes with what follows it: alone it would make two tokens of a common word."""
    known, lowest = {piece for piece, _ in pieces}, min(score for _, score in pieces)
    begun = [(f"▁{c}", lowest) for c in map(chr, range(33, 127)) if f"▁{c}" not in known]
    # The rarest pieces make room; single characters stay.
    spare = sorted((i for i, (piece, _) in enumerate(pieces) if len(piece) > 1), key=lambda i: (pieces[i][1], -i))
    removed = set(spare[: len(begun)])
    kept = [(piece, BYTE_SCORE if piece == "▁" else score) for i, (piece, score) in enumerate(pieces) if i not in removed]
    return kept + begun
