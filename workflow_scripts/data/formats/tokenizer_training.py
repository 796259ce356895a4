"""Small tokenizers for models that are trained from scratch, in the format of Hugging Face `tokenizers`.

Both cut a text into words with the space before them, numbers, and runs of other marks, and then each of these into
pieces. Nothing is added before or after the text. Offsets count characters; that of a piece at the beginning of a word
includes the space before it. The name of a special token is that token wherever it stands in a text.
"""

import math
import re
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
WORD = re.compile(r"▁?[^\W\d_]+|▁?\d+|▁?(?:[^\w▁]|_)+|▁+")  # the same, nearly, for counting
OFTEN = 20  # a character that the texts have less often has no piece
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
    """Unigram language model of pieces, after Kudo 2018: `▁` stands for a space, rare characters become bytes.

    The pieces begin as those of byte-pair encoding, three times too many; each round scores a piece by the logarithm of
    its share in the best segmentation of all texts, and keeps the more used half of those that are too many. (The
    trainer of the library gives other pieces each time.)
    """
    from tokenizers import Tokenizer, models, trainers

    words = Counter(word for text in texts for word in WORD.findall(text.replace(" ", "▁")))
    wanted = vocabulary_size - len(SPECIAL_TOKENS) - len(BYTES)
    pairs = Tokenizer(models.BPE())
    pairs.train_from_iterator(
        (word for word in sorted(words) for _ in range(words[word])),
        trainers.BpeTrainer(vocab_size=3 * wanted, show_progress=False),
    )
    characters: Counter[str] = Counter()
    for word, times in words.items():
        for character in word:
            characters[character] += times
    common = {character for character, times in characters.items() if times >= OFTEN}
    # With these, a space need never stand alone, which would make two tokens of a common word.
    kept = common | {f"▁{character}" for character in common if character != "▁"}
    size = 3 * wanted
    tokenizer = pairs
    while True:
        uses = _uses(tokenizer, words)
        # So small a rest is not worth a round.
        size = (size + wanted) // 2 if size > 1.1 * wanted else wanted
        others = [piece for piece in uses if piece not in kept and set(piece) <= common]
        others = sorted(others, key=lambda piece: (-uses[piece], piece))[: max(0, size - len(kept))]
        pieces = sorted(kept) + others
        total = math.log(sum(uses[piece] for piece in pieces) + len(pieces))
        scores = [(p, BYTE_SCORE if p == "▁" else math.log(uses[p] + 1) - total) for p in pieces]
        tokenizer = _unigram_tokenizer(sorted(scores, key=lambda entry: (-entry[1], entry[0])))
        if size == wanted:
            return tokenizer


def _uses(tokenizer: "Tokenizer", words: Counter[str]) -> Counter[str]:
    """How often each piece stands in the words, by this tokenizer."""
    uses: Counter[int] = Counter()
    known = sorted(words)
    for word, encoded in zip(known, tokenizer.encode_batch_fast(known), strict=True):
        for piece in encoded.ids:
            uses[piece] += words[word]
    return Counter({tokenizer.id_to_token(piece): times for piece, times in uses.items()})


def _unigram_tokenizer(scores: list[tuple[str, float]]) -> "Tokenizer":
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

    vocabulary = [(token, 0.0) for token in SPECIAL_TOKENS] + [(byte, BYTE_SCORE) for byte in BYTES] + scores
    tokenizer = Tokenizer(models.Unigram(vocabulary, UNKNOWN, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(PIECE_OF_TEXT), "isolated")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_special_tokens(SPECIAL_TOKENS)
    return tokenizer
