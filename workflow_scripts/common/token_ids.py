"""The ids of the special tokens of seq2seq vocabularies. Each side has words of its own."""

SPECIAL_TOKENS = ["<pad>", "<s>", "</s>", "<unk>"]  # by id
PAD = SPECIAL_TOKENS.index("<pad>")
EOS = SPECIAL_TOKENS.index("</s>")  # ends a sentence, and starts the decoder's input
UNK = SPECIAL_TOKENS.index("<unk>")
