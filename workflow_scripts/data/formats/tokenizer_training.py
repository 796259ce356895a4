"""Small tokenizers for models trained from scratch, in the format of Hugging Face `tokenizers`.

`bpe` and `unigram` split a text into words, numbers and runs of other characters, each with the
space before it, and these into pieces. No tokens are added before or after the text. The name of a
special token always becomes that token.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable
from itertools import chain, repeat
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
    """Train a `bpe` or `unigram` tokenizer with `vocabulary_size` tokens.

    They include special tokens and 256 bytes.

    words: word -> number of occurrences without a space before it to add to the texts.
    """
    # Separated by tabs, because a word after a space is another token.
    bare_words = ("\t".join([word] * words[word]) for word in sorted(words))
    train = {"bpe": train_byte_pairs, "unigram": train_unigram}[kind]
    return train(vocabulary_size, chain(texts, bare_words))


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
    """Train a unigram language model of pieces (after Kudo 2018).

    `▁` is a space, rare characters become bytes. Starts with three times the wanted pieces, from
    byte-pair encoding. Each round scores a piece by the log of its share in the best segmentation
    of all texts, and drops the less used half of the excess pieces.

    Why not the library's UnigramTrainer (0.23.3): on WordNet's definitions, with one thread, its
    ids of 5 of 4,096 pieces differ from call to call; it takes 20 s instead of 7 s; and its `▁` is
    a token of its own before many words, so that a text has 14% more tokens.
    """
    words: Counter[str] = Counter()
    for text in texts:
        words.update(WORD.findall(text.replace(" ", "▁")))
    final_size = vocabulary_size - len(SPECIAL_TOKENS) - len(BYTES)
    common = _find_common_characters(words)
    # With these pieces, the space before a word is never a separate token, which would split common
    # words.
    kept = common | {f"▁{character}" for character in common if character != "▁"}
    size = 3 * final_size
    tokenizer = _train_first_pieces(words, size)
    while True:
        uses = _count_uses(tokenizer, words)
        # An excess of 10% or less is dropped at once, to save rounds.
        if size > 1.1 * final_size:
            size = (size + final_size) // 2
        else:
            size = final_size
        removable = [piece for piece in uses if piece not in kept and set(piece) <= common]
        removable.sort(key=lambda piece: (-uses[piece], piece))
        room = max(0, size - len(kept))
        pieces = sorted(kept) + removable[:room]
        tokenizer = _make_unigram_tokenizer(_score_pieces(pieces, uses))
        if size == final_size:
            return tokenizer


def _find_common_characters(words: Counter[str]) -> set[str]:
    """Return the characters that occur at least OFTEN times in all texts."""
    characters: Counter[str] = Counter()
    for word, times in words.items():
        for character in word:
            characters[character] += times
    return {character for character, times in characters.items() if times >= OFTEN}


def _train_first_pieces(words: Counter[str], size: int) -> "Tokenizer":
    """Train byte-pair encoding of up to `size` pieces on each word as often as it occurs."""
    from tokenizers import Tokenizer, models, trainers

    tokenizer = Tokenizer(models.BPE())
    occurrences = chain.from_iterable(repeat(word, words[word]) for word in sorted(words))
    trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False)
    tokenizer.train_from_iterator(occurrences, trainer)
    return tokenizer


def _score_pieces(pieces: list[str], uses: Counter[str]) -> list[tuple[str, float]]:
    """Return each piece with the log of its share of all uses, by decreasing score.

    One use is added to those of each piece. The space alone has the score of a byte, so that it is
    used only where no other piece fits.
    """
    log_total = math.log(sum(uses[piece] for piece in pieces) + len(pieces))
    scores = []
    for piece in pieces:
        if piece == "▁":
            scores.append((piece, BYTE_SCORE))
        else:
            scores.append((piece, math.log(uses[piece] + 1) - log_total))
    return sorted(scores, key=lambda entry: (-entry[1], entry[0]))


def _count_uses(tokenizer: "Tokenizer", words: Counter[str]) -> Counter[str]:
    """Count how often this tokenizer uses each piece to encode the words as often as they occur."""
    uses_of_id: Counter[int] = Counter()
    texts = sorted(words)
    for word, encoded in zip(texts, tokenizer.encode_batch_fast(texts), strict=True):
        for piece_id in encoded.ids:
            uses_of_id[piece_id] += words[word]
    uses: Counter[str] = Counter()
    for piece, piece_id in tokenizer.get_vocab().items():
        if piece_id in uses_of_id:
            uses[piece] = uses_of_id[piece_id]
    return uses


def _make_unigram_tokenizer(scores: list[tuple[str, float]]) -> "Tokenizer":
    """Make the tokenizer of the special tokens, the bytes, and the scored pieces, in this order."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

    special = [(token, 0.0) for token in SPECIAL_TOKENS]
    byte_pieces = [(byte, BYTE_SCORE) for byte in BYTES]
    vocabulary = special + byte_pieces + scores
    tokenizer = Tokenizer(models.Unigram(vocabulary, UNKNOWN, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(PIECE_OF_TEXT), "isolated")
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    tokenizer.add_special_tokens(SPECIAL_TOKENS)
    return tokenizer


def train_wordpiece(vocabulary_size: int, texts: Iterable[str]) -> "Tokenizer":
    """Train a lower-case tokenizer that splits words and punctuation, then pieces.

    ## starts all pieces of a word but the first.
    """
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from tokenizers.trainers import WordPieceTrainer

    normalizer = normalizers.BertNormalizer(lowercase=True)
    all_texts = list(texts)  # read twice
    characters: set[str] = set()
    for text in all_texts:
        characters.update(normalizer.normalize_str(text))
    characters.discard(" ")
    # Given in sorted order, because the library would number them differently each time, and their
    # numbers decide between pairs of equal frequency.
    inner = [f"##{character}" for character in sorted(characters)]
    trainer = WordPieceTrainer(
        vocab_size=vocabulary_size, special_tokens=WORDPIECE_TOKENS + inner, show_progress=False
    )
    learner = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    learner.normalizer = normalizer
    learner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    learner.train_from_iterator(all_texts, trainer)
    tokenizer = Tokenizer(models.WordPiece(learner.get_vocab(), unk_token="[UNK]"))
    tokenizer.normalizer = learner.normalizer
    tokenizer.pre_tokenizer = learner.pre_tokenizer
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(WORDPIECE_TOKENS)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer
