"""A WordPiece tokenizer of BERT's kind, trained on given texts, in the format of Hugging Face `tokenizers`."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]  # their ids are 0 to 4


def train(vocabulary_size: int, texts: Iterable[str]) -> "Tokenizer":
    """Lower case; words and marks apart, and these in pieces, of which all but a word's first begin with ##."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

    normalizer, texts = normalizers.BertNormalizer(lowercase=True), list(texts)
    characters = {character for text in texts for character in normalizer.normalize_str(text)} - {" "}
    # Named beforehand, in order: the library numbers them in another order each time, which decides between pairs that
    # are as frequent.
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
