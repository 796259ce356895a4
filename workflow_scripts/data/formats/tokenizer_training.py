"""Small tokenizers for models trained from scratch, in the format of Hugging Face `tokenizers`.

`bpe` and `unigram` split a text into words, numbers and runs of other characters, each with the
space before it, and these into pieces. No tokens are added before or after the text. The name of a
special token always becomes that token.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SPECIAL_TOKENS = ["<bos>", "<eos>", "<pad>", "<unk>"]  # their ids are 0 to 3
WORDPIECE_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]  # BERT's, the same
UNKNOWN = SPECIAL_TOKENS.index("<unk>")
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
# Words, numbers, other characters, each with the space before it, as in GPT-2's byte-level
# tokenizer.
PIECE_OF_TEXT = r"▁?\p{L}+|▁?\p{N}+|▁?[^▁\p{L}\p{N}]+|▁+"
WORD = re.compile(r"▁?[^\W\d_]+|▁?\d+|▁?(?:[^\w▁]|_)+|▁+")  # almost the same pattern, for counting
OFTEN = 20  # minimum number of occurrences for a character to have a piece
# Lower than the score of every piece, so that bytes are used only for characters without a piece.
BYTE_SCORE = -100.0


def train_tokenizer(
    kind: str, vocabulary_size: int, texts: Iterable[str], words: Counter[str]
) -> "Tokenizer":
    """Train a `bpe` or `unigram` tokenizer with `vocabulary_size` tokens, including special tokens and 256 bytes.

    words: word -> number of occurrences without a space before it to add to the texts.
    """
    # Separated by tabs, because a word after a space is another token.
    bare = ("\t".join([word] * words[word]) for word in sorted(words))
    return {"bpe": train_byte_pairs, "unigram": train_unigram}[kind](
        vocabulary_size, chain(texts, bare)
    )


def train_byte_pairs(vocabulary_size: int, texts: Iterable[str]) -> "Tokenizer":
    """Train byte-level byte-pair encoding like GPT-2's: `Ġ` is the space before a word."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        special_tokens=SPECIAL_TOKENS,
        # Sorted, because the library returns the 256 characters in another order each time.
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def train_unigram(vocabulary_size: int, texts: Iterable[str]) -> "Tokenizer":
    """Train a unigram language model of pieces (after Kudo 2018): `▁` is a space, rare characters become bytes.

    Starts with three times the wanted pieces, from byte-pair encoding. Each round scores a piece by
    the log of its share in the best segmentation of all texts, and drops the less used half of the
    excess pieces.

    Why not the library's UnigramTrainer (0.23.3): on WordNet's definitions, with one thread, its
    ids of 5 of 4,096 pieces differ from call to call; it takes 20 s instead of 7 s; and its `▁` is
    a token of its own before many words, so that a text has 14% more tokens.
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
    # With these pieces, the space before a word is never a separate token, which would split common
    # words.
    kept = common | {f"▁{character}" for character in common if character != "▁"}
    size = 3 * wanted
    tokenizer = pairs
    while True:
        uses = _uses(tokenizer, words)
        # An excess of 10% or less is dropped at once, to save rounds.
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
    """Count how often this tokenizer uses each piece to encode the words."""
    uses: Counter[int] = Counter()
    known = sorted(words)
    for word, encoded in zip(known, tokenizer.encode_batch_fast(known), strict=True):
        for piece in encoded.ids:
            uses[piece] += words[word]
    return Counter({tokenizer.id_to_token(piece): times for piece, times in uses.items()})


def _unigram_tokenizer(scores: list[tuple[str, float]]) -> "Tokenizer":
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

    vocabulary = (
        [(token, 0.0) for token in SPECIAL_TOKENS] + [(byte, BYTE_SCORE) for byte in BYTES] + scores
    )
    tokenizer = Tokenizer(models.Unigram(vocabulary, UNKNOWN, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(PIECE_OF_TEXT), "isolated")
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    tokenizer.add_special_tokens(SPECIAL_TOKENS)
    return tokenizer


def train_wordpiece(vocabulary_size: int, texts: Iterable[str]) -> "Tokenizer":
    """Train a lower-case tokenizer that splits words and punctuation, then pieces; ## starts all but a word's first."""
    from tokenizers import (
        Tokenizer,
        decoders,
        models,
        normalizers,
        pre_tokenizers,
        processors,
        trainers,
    )

    normalizer, texts = normalizers.BertNormalizer(lowercase=True), list(texts)
    characters = {character for text in texts for character in normalizer.normalize_str(text)} - {
        " "
    }
    # Given in sorted order, because the library would number them differently each time, and their
    # numbers decide between pairs of equal frequency.
    inner = [f"##{character}" for character in sorted(characters)]
    learnt = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    learnt.normalizer, learnt.pre_tokenizer = normalizer, pre_tokenizers.BertPreTokenizer()
    learnt.train_from_iterator(
        texts,
        trainers.WordPieceTrainer(
            vocab_size=vocabulary_size, special_tokens=WORDPIECE_TOKENS + inner, show_progress=False
        ),
    )
    tokenizer = Tokenizer(models.WordPiece(learnt.get_vocab(), unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = learnt.normalizer, learnt.pre_tokenizer
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(WORDPIECE_TOKENS)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer
