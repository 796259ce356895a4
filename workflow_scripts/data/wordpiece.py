"""A WordPiece tokenizer of BERT's kind, trained on given texts, in the format of Hugging Face `tokenizers`."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]  # their ids are 0 to 4


def train(vocabulary_size: int, texts: Iterable[str]) -> "Tokenizer":
    """Lower case; words and marks apart, and these in pieces, of which all but a word's first begin with ##."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocabulary_size, special_tokens=SPECIAL_TOKENS, limit_alphabet=500, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.BertProcessing(
        *(("[SEP]", SPECIAL_TOKENS.index("[SEP]")), ("[CLS]", SPECIAL_TOKENS.index("[CLS]")))
    )
    return tokenizer
