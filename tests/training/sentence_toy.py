"""A small pre-trained encoder with a WordPiece tokenizer, small data sets of sentences, and specs
to train on them.
"""

import random
from pathlib import Path

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from tests.data.preparing import ToyOptions, write_data
from workflow_scripts.data.datasets.sentences import Sentence, build_limited_table
from workflow_scripts.models.importing import import_model
from workflow_scripts.models.weights import list_weights, write_tensors

NAMES, VERBS, PLACES = (
    ["anna", "boris", "clara", "david"], ["met", "saw", "liked"], ["here", "there", "far away"]
)  # fmt: skip
PIECES = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    *NAMES,
    *VERBS,
    "here",
    "th",
    "##ere",
    "far",
    "away",
    ".",
]
SIZES = {"layers": 2, "heads": 2, "width": 32, "feed_forward": 64, "dropout": 0.0, "positions": 32}


def write_tokenizer(folder: Path, pieces: list[str] = PIECES) -> Tokenizer:
    tokenizer = Tokenizer(
        WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]")
    )
    tokenizer.normalizer, tokenizer.pre_tokenizer = BertNormalizer(), BertPreTokenizer()
    tokenizer.save(str(folder / "tokenizer.json"))
    return tokenizer


def write_encoder(folder: Path, family: str = "bert", pieces: list[str] = PIECES, **sizes) -> Path:
    """An encoder of random weights, in the form of a checkpoint."""
    torch.manual_seed(0)
    folder.mkdir(parents=True)
    module = import_model(model_name(family))
    model = module.build(module.Settings(**model_settings(family, **sizes)), len(pieces))
    model.config.save_pretrained(folder)
    write_tensors({f"{model.base_model_prefix}.{name}": weight for name, weight in list_weights(model).items()},
                  folder / "model.safetensors")  # fmt: skip
    write_tokenizer(folder, pieces)
    return folder


def model_name(family: str) -> str:
    return "cat" if family == "cat" else "encoder"


def model_settings(family: str = "bert", **more) -> dict:
    cat = {"codes": 8, "last_codes": 6} if family == "cat" else {}
    return {
        "family": family,
        "readout": "mix" if family == "cat" else "last",
        **SIZES,
        **cat,
        **more,
    }


def pairs(rows: int, seed: int) -> list[Sentence]:
    """Who met whom where; label 1 where the first subject is one of two, subset `long` where it is
    far away.
    """
    rng = random.Random(seed)
    made = []
    for row in range(rows):
        (one, first), (_, second) = (
            (
                subject := rng.choice(NAMES),
                f"{subject} {rng.choice(VERBS)} {rng.choice(NAMES)} {rng.choice(PLACES)} .",
            )
            for _ in range(2)
        )
        made.append(
            Sentence(
                f"{seed}-{row}",
                first,
                second,
                float(one in NAMES[:2]),
                "long" if "far" in first else "",
            )
        )
    return made


def write_pairs(
    folder: Path, task: str = "same", scores: bool = False, single: bool = False
) -> Path:
    splits = {"train": pairs(200, 0), "valid": pairs(40, 1), "test": pairs(60, 2)}
    if scores:
        splits = {
            split: [row._replace(label=3.0 * row.label) for row in rows]
            for split, rows in splits.items()
        }
    if single:
        splits = {
            split: [row._replace(second=None) for row in rows] for split, rows in splits.items()
        }
    made = build_limited_table(splits, None if scores else ["another", "same"], ToyOptions(), [])
    data = {"task": task, "prepare": "workflow_scripts.data.datasets.sts", "options": {}}
    write_data(made, data | {"sources": [], "protocol": "paper"}, folder)
    return folder


def sentence_spec(
    family: str = "bert", task: str = "same", steps: int = 150, **changes: dict
) -> dict:
    """A spec; `changes` are keys of its sections."""
    spec = {
        "task": task, "kind": "sentence_prediction", "method": family, "variant": "ft", "seed": 1,
        "protocol": "reduced",
        "model": {"name": model_name(family), **model_settings(family), "tied": False, "frozen": False},
        "problem": {"prediction": "head", "head_layers": 1, "head_width": 16, "longest": 32},
        "objective": {},
        "training": {
            "max_steps": steps, "batch_tokens": 1024, "batch_sentences": 16, "learning_rate": 0.003,
            "schedule": "linear", "warmup_steps": 10, "betas": [0.9, 0.999], "adam_epsilon": 1e-8, "weight_decay": 0.0,
            "clip_norm": 1.0, "validate_every": 50, "log_every": 10,
            "validation": {"split": "valid", "metric": "accuracy"}, "torch_threads": 1, "precision": "fp32",
        },
        "init": {"run": f"pairs/{family}/pretrain/seed-1", "spec": "0" * 16},
    }  # fmt: skip
    for section, content in changes.items():
        spec[section] = spec[section] | content
    return spec
