"""Beam search (5) on CoGnition's new compounds: ours against Hugging Face's generate() of a Marian
model of one size.

The weights are random and both always run to the same length, so no search is lucky to end early;
ours also drops sentences that have ended, which does not count here. The order of sentences and the
batches are the same.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import MarianConfig, MarianMTModel
from transformers.utils import logging

from benchmarks.turns import show, take_turns
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.specs import resolve_run
from workflow_scripts.data.prepared import read_table, read_vocabularies
from workflow_scripts.data.token_ids import EOS, PAD
from workflow_scripts.models.transformer.settings import Settings
from workflow_scripts.tasks.batching import bucket_by_length, to_sequences
from workflow_scripts.tasks.seq2seq.checkpoint import build_model
from workflow_scripts.tasks.seq2seq.decoding import decode_with_beam

BEAM = 5


def marian_like(settings: Settings, source_words: int, target_words: int) -> MarianMTModel:
    """Marian with the sizes of one of our models that has sinusoidal positions and a plain
    feed-forward part.
    """
    sizes = {
        f"{side}_{name}": getattr(settings, key)
        for side in ("encoder", "decoder")
        for name, key in (
            ("layers", "layers"),
            ("attention_heads", "heads"),
            ("ffn_dim", "feed_forward"),
        )
    }
    config = MarianConfig(
        vocab_size=source_words,
        decoder_vocab_size=target_words,
        share_encoder_decoder_embeddings=False,
        d_model=settings.width,
        activation_function="relu",
        pad_token_id=PAD,
        eos_token_id=EOS,
        decoder_start_token_id=EOS,
        bos_token_id=EOS,
        forced_eos_token_id=None,
        **sizes,
    )
    return MarianMTModel(config).eval()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("results/small/data/cognition"))
    parser.add_argument("--scale", default="full", help="whose sizes the models have")
    parser.add_argument("--sentences", type=int, default=10_800)
    parser.add_argument("--batch-tokens", type=int, default=1024, help="source tokens of a batch")
    parser.add_argument("--length", type=int, default=16, help="tokens of every output")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    logging.set_verbosity_error()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    vocabulary = read_vocabularies(args.data)
    specs = {
        variant: resolve_run(
            load_catalogue(), Run.parse(f"cognition/transformer/{variant}/seed-1"), args.scale
        )
        for variant in ("sinusoidal", "default")
    }
    models = {name: build_model(spec.model, vocabulary).eval() for name, spec in specs.items()}
    # Any: generate() is typed for a protocol that the model does not state to fulfil.
    marian: Any = marian_like(
        specs["sinusoidal"].model.settings, len(vocabulary["source"]), len(vocabulary["target"])
    )
    for model in models.values():  # the end symbol is never the most probable
        with torch.no_grad():
            model.target_embedding.weight[EOS] = 0
    table = read_table(args.data, "cg_test", ["source_ids"])
    chosen = np.linspace(0, len(table) - 1, min(args.sentences, len(table))).astype(int)
    sources = to_sequences(table["source_ids"].take(chosen))
    length = sources.length + 1
    batches = [
        torch.from_numpy(sources.pad(rows))
        for rows in bucket_by_length(length, length, args.batch_tokens)
    ]

    def ours(variant: str) -> None:
        for batch in batches:
            decode_with_beam(models[variant], batch, BEAM, args.length)

    def theirs() -> None:
        for batch in batches:
            marian.generate(
                batch,
                attention_mask=batch.ne(PAD).long(),
                num_beams=BEAM,
                do_sample=False,
                max_new_tokens=args.length,
                min_new_tokens=args.length,
                early_stopping=True,
            )

    contenders = {
        "ours, plain": lambda: ours("sinusoidal"),
        "ours, relative and gated": lambda: ours("default"),
        "Marian": theirs,
    }
    print(f"{len(length)} sentences in {len(batches)} batches, outputs of {args.length} tokens")
    with torch.inference_mode():
        show(
            "Beam search on CoGnition",
            take_turns(contenders, args.rounds, warm_up=1),
            "ours, plain",
        )


if __name__ == "__main__":
    main()
