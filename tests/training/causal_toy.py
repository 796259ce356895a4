"""A small dictionary task for causal language models: prepared folders of text and of prompts, and
specs for them.
"""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from tests.training.toy import toy_spec

KINDS = {
    "goat": "mountaindwelling beast",
    "hen": "farmyard fowl",
    "oar": "riverside implement",
    "tent": "desert shelter",
}
SIZES = ["small", "largish", "young", "old", "grey", "brownish"]
ENDINGS = ["of the north", "seen seldomly", "with markings", "in summertime", "of old times"]
TEMPLATE = '{content} is called a "'


def definitions() -> list[tuple[str, str]]:
    """(content, label) of all items."""
    return [
        (f"{size} {kind} {end}", word)
        for word, kind in KINDS.items()
        for size in SIZES
        for end in ENDINGS
    ]


def trained_tokenizer(texts: list[str], space: str = "") -> Tokenizer:
    """A byte-level BPE tokenizer whose labels, after `space`, are single tokens and most other
    words are several.
    """
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<bos>", "<eos>", "<pad>", "<unk>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    options = {"special_tokens": special, "initial_alphabet": alphabet, "show_progress": False}
    trainer = trainers.BpeTrainer(vocab_size=340, **options)
    tokenizer.train_from_iterator(
        [*texts, *[space + word for word in KINDS for _ in range(300)]], trainer
    )
    return tokenizer


def write_text(folder: Path, space: str = "") -> Path:
    """A prepared folder of the kind `text`: train and valid, with tokenizer.json; `space` is put
    before each answer.
    """
    folder.mkdir(parents=True)
    texts = [f'{content} is called a "{space}{word}' for content, word in definitions()]
    tokenizer = trained_tokenizer(texts, space)
    tokenizer.save(str(folder / "tokenizer.json"))
    for split, chosen in (("train", texts[::2]), ("valid", texts[1::6])):
        ids = [
            encoding.ids for encoding in tokenizer.encode_batch(chosen, add_special_tokens=False)
        ]
        columns = {"source": ["toy"] * len(ids), "ids": pa.array(ids, pa.list_(pa.int32()))}
        pq.write_table(pa.table(columns), folder / f"{split}.parquet")
    (folder / "dataset.json").write_text(json.dumps({"task": "toy-text"}))
    return folder


def write_prompts(folder: Path, phrases: bool = False) -> Path:
    """A prepared folder of the kind `prompt`; some answers are no single token, and are left out by
    those who read it.

    With `phrases` the last words of each content, after its size, are one group.
    """
    folder.mkdir(parents=True)
    items, others = (
        definitions(),
        [("a thing of many tokens", f"unspeakableness{letter}") for letter in "abcdefgh"],
    )
    for split, chosen in (
        ("train", items[::2] + others),
        ("valid", items[1::4]),
        ("test", items[3::4] + others),
    ):
        contents, labels = zip(*chosen, strict=True)
        columns = {
            "item": [f"{split}-{row}" for row in range(len(chosen))],
            "content": contents,
            "label": labels,
        }
        if phrases:
            columns["groups"] = [[0] + [1] * content.count(" ") for content in contents]
        pq.write_table(
            pa.table({**columns, "subset": [""] * len(chosen)}), folder / f"{split}.parquet"
        )
    (folder / "dataset.json").write_text(json.dumps({"task": "toy-prompts"}))
    return folder


def causal_spec(
    kind: str, family: str = "gpt2", objective: dict | None = None, **training: object
) -> dict:
    """A resolved spec of a two-block model: pre-training on toy-text, or fine-tuning on
    toy-prompts.
    """
    model = {
        "name": "causal_lm",
        "family": family,
        "bos": family in ("llama", "gemma"),
        "template": TEMPLATE,
    }
    sizes = {
        "layers": 2,
        "heads": 2,
        "width": 32,
        "feed_forward": 64,
        "dropout": 0.1,
        "positions": 64,
    }
    carma = {"name": "carma", "weight": 0.0, "last_block_mi": 1, "last_block_stability": 1}
    own = {
        "language_modelling": {"task": "toy-text", "variant": "pretrain", "init": None},
        "prompt": {
            "task": "toy-prompts",
            "variant": "ft",
            "init": {"run": "toy-text/x/pretrain/seed-3", "spec": "0"},
        },
    }[kind]
    changes = {
        "batch_tokens": 1024,
        "batch_sentences": 16,
        "learning_rate": 0.01,
        "schedule": "linear",
        "warmup_steps": 10,
        "betas": [0.9, 0.999],
        "validate_every": 20,
    }
    if kind == "language_modelling":
        changes["validation"] = {"split": "valid", "metric": "log_likelihood"}
    spec = (
        toy_spec(**changes | training)
        | own
        | {"kind": kind, "method": family, "protocol": "stand_in"}
    )
    return spec | {"model": model | sizes, "problem": {}, "objective": carma | (objective or {})}
