"""The ids of the special tokens of seq2seq vocabularies, the same on both sides."""

SPECIAL_TOKENS = ["<pad>", "<s>", "</s>", "<unk>"]  # by id
PAD = SPECIAL_TOKENS.index("<pad>")
EOS = SPECIAL_TOKENS.index("</s>")  # ends a sentence, and starts the decoder's input
UNK = SPECIAL_TOKENS.index("<unk>")
