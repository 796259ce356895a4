"""A small RoBERTa in the files of the hub, with random weights and a tokenizer trained on a few
words.
"""

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import RobertaConfig, RobertaForMaskedLM

from workflow_scripts.common.files import hash_file, write_json
from workflow_scripts.data.sources.fetch_model import select_model_files

SIZES = {
    "encoder_layers": 2,
    "encoder_heads": 2,
    "encoder_width": 16,
    "encoder_feed_forward": 24,
    "encoder_positions": 40,
}
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]


def tokenizer(texts: list[str], special: list[str] = SPECIAL) -> Tokenizer:
    """Byte pairs as RoBERTa has them."""
    made = Tokenizer(models.BPE(unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        texts,
        trainers.BpeTrainer(vocab_size=300, special_tokens=special, initial_alphabet=alphabet),
    )
    return made


def write_roberta(
    folder: Path, texts: list[str], seed: int = 0, **changes: object
) -> RobertaForMaskedLM:
    """Write the folder, with the manifest that `fetch-model` gives it; returns the model."""
    folder.mkdir(parents=True, exist_ok=True)
    pieces = tokenizer(texts)
    pieces.save(str(folder / "tokenizer.json"))
    sizes = SIZES | changes
    config = RobertaConfig(
        vocab_size=pieces.get_vocab_size(),
        hidden_size=sizes["encoder_width"],
        num_hidden_layers=sizes["encoder_layers"],
        num_attention_heads=sizes["encoder_heads"],
        intermediate_size=sizes["encoder_feed_forward"],
        max_position_embeddings=sizes["encoder_positions"],
        type_vocab_size=1,
        layer_norm_eps=1e-5,
    )
    torch.manual_seed(seed)
    model = RobertaForMaskedLM(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    model.save_pretrained(folder)
    files = {}
    for file in select_model_files([path.name for path in folder.iterdir()], str(folder)):
        size = (folder / file).stat().st_size
        files[file] = {"sha256": hash_file(folder / file), "bytes": size}
    manifest = {"name": "FacebookAI/roberta-base", "revision": "0" * 40, "files": files}
    write_json(folder / "model.json", manifest)
    return model.eval()
