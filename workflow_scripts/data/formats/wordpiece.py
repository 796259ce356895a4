"""A WordPiece tokenizer like BERT's, trained on given texts, in the format of Hugging Face `tokenizers`."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]  # their ids are 0 to 4


def train_wordpiece(vocabulary_size: int, texts: Iterable[str]) -> "Tokenizer":
    """Train a lower-case tokenizer that splits words and punctuation, then pieces; ## starts all but a word's first."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

    normalizer, texts = normalizers.BertNormalizer(lowercase=True), list(texts)
    characters = {character for text in texts for character in normalizer.normalize_str(text)} - {" "}
    # Given in sorted order, because the library would number them differently each time, and their numbers decide
    # between pairs of equal frequency.
    inner = [f"##{character}" for character in sorted(characters)]
    learnt = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    learnt.normalizer, learnt.pre_tokenizer = normalizer, pre_tokenizers.BertPreTokenizer()
    learnt.train_from_iterator(
        texts,
        trainers.WordPieceTrainer(
            vocab_size=vocabulary_size, special_tokens=SPECIAL_TOKENS + inner, show_progress=False
        ),
    )
    tokenizer = Tokenizer(models.WordPiece(learnt.get_vocab(), unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = learnt.normalizer, learnt.pre_tokenizer
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(SPECIAL_TOKENS)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer
