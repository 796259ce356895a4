"""A training step of our Transformer against torch.nn.Transformer and Marian, and of SQ-Transformer
against ours.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from rich.console import Console
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode
from transformers import MarianConfig, MarianMTModel

from benchmarks.turns import show, take_turns
from workflow_scripts.common.run_names import Run
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.specs import resolve_training
from workflow_scripts.models.transformer import model as seq2seq
from workflow_scripts.tasks.base import Loss, TrainingSetup
from workflow_scripts.tasks.batching import Batch
from workflow_scripts.tasks.run_spec import RunSpec
from workflow_scripts.tasks.seq2seq.checkpoint import build_model
from workflow_scripts.tasks.seq2seq.word_loss import WordLoss
from workflow_scripts.training.run import add_objective

WIDTH, HEADS, LAYERS, FEED_FORWARD, DROPOUT = 256, 4, 3, 512, 0.3
SOURCE_WORDS, TARGET_WORDS = 25, 18


class TorchTransformer(nn.Module):
    """torch.nn.Transformer of the same size, with the embeddings and the tied output that it leaves
    to its user.
    """

    def __init__(self) -> None:
        super().__init__()
        self.source = nn.Embedding(SOURCE_WORDS, WIDTH, padding_idx=0)
        self.target = nn.Embedding(TARGET_WORDS, WIDTH, padding_idx=0)
        self.positions = nn.Embedding(64, WIDTH)
        self.body = nn.Transformer(
            WIDTH, HEADS, LAYERS, LAYERS, FEED_FORWARD, DROPOUT, batch_first=True
        )

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        def embed(table: nn.Embedding, words: Tensor) -> Tensor:
            return table(words) * WIDTH**0.5 + self.positions.weight[: words.size(1)]

        states = self.body(
            embed(self.source, source),
            embed(self.target, target),
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(target.size(1)),
            src_key_padding_mask=source.eq(0),
            memory_key_padding_mask=source.eq(0),
            tgt_is_causal=True,
        )
        return states @ self.target.weight.T


def marian() -> MarianMTModel:
    """Hugging Face's Marian of the same size."""
    same: dict[str, Any] = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (
            ("layers", LAYERS),
            ("attention_heads", HEADS),
            ("ffn_dim", FEED_FORWARD),
        )
    }
    return MarianMTModel(
        MarianConfig(
            vocab_size=SOURCE_WORDS,
            decoder_vocab_size=SOURCE_WORDS,
            d_model=WIDTH,
            dropout=DROPOUT,
            activation_function="relu",
            pad_token_id=0,
            eos_token_id=2,
            decoder_start_token_id=2,
            max_position_embeddings=64,
            **same,
        )
    )


def random_batch(sentences: int, source_length: int, target_length: int) -> Batch:
    """Full sentences of random words: no contender gains by skipping padding."""
    source = torch.randint(4, SOURCE_WORDS, (sentences, source_length))
    target = torch.randint(4, TARGET_WORDS, (sentences, target_length))
    end = torch.full((sentences, 1), 2)
    return Batch(
        torch.cat([source, end], 1), torch.cat([end, target], 1), torch.cat([target, end], 1)
    )


def objective_of(spec: RunSpec, model: nn.Module) -> Loss:
    """What a sequence-to-sequence run is trained by: its objective around the cross-entropy of the
    next word.
    """
    word_loss = WordLoss(spec.problem.label_smoothing)
    return add_objective(TrainingSetup(model, word_loss, [], dict), spec.objective).loss


def step(model: nn.Module, loss_of: Callable[[], Tensor]) -> Callable[[], None]:
    """One optimiser step: forward, backward, AdamW."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def call() -> None:
        loss_of().backward()
        optimiser.step()
        optimiser.zero_grad()
        getattr(model, "finish_step", lambda: None)()

    return call


def under_autocast(call: Callable[[], None]) -> Callable[[], None]:
    """The same step with matrix products in bf16, as `precision: bf16` trains."""

    def in_bf16() -> None:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            call()

    return in_bf16


def flops(call: Callable[[], None]) -> int:
    """Floating point operations of the matrix products of one call."""
    with FlopCounterMode(display=False) as counter:
        call()
    return counter.get_total_flops()


def gemm_peak(size: int = 2048, seconds: float = 1.0) -> float:
    """FLOP/s of a large fp32 matrix product on the same threads."""
    a, b = torch.randn(size, size), torch.randn(size, size)
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        torch.mm(a, b)
        times.append(time.perf_counter() - start)
    return 2 * size**3 / min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    # What a batch of 4,096 tokens of SCAN looks like.
    batch = random_batch(sentences=250, source_length=8, target_length=15)

    settings = {
        "layers": LAYERS,
        "heads": HEADS,
        "width": WIDTH,
        "feed_forward": FEED_FORWARD,
        "dropout": DROPOUT,
    }
    plain = seq2seq.build(
        seq2seq.Settings(**(settings | {"positions": "sinusoidal", "gated": False})),
        SOURCE_WORDS,
        TARGET_WORDS,
    )
    torchs, hugging = TorchTransformer(), marian().train()
    entropy = nn.functional.cross_entropy
    target = batch.target_out.flatten()
    peers = {
        "ours, plain": step(
            plain,
            lambda: entropy(plain(batch.source, batch.target_in).logits.flatten(0, 1), target),
        ),
        "torch.nn.Transformer": step(
            torchs, lambda: entropy(torchs(batch.source, batch.target_in).flatten(0, 1), target)
        ),
        "Marian": step(
            hugging,
            lambda: entropy(
                hugging(
                    input_ids=batch.source,
                    attention_mask=batch.source.ne(0),
                    decoder_input_ids=batch.target_in,
                    use_cache=False,
                ).logits.flatten(0, 1),
                target,
            ),
        ),
    }
    show(
        f"One training step, {args.threads} threads", take_turns(peers, args.rounds), "ours, plain"
    )

    catalogue, ours = load_catalogue(), {}
    vocabulary = {"source": [""] * SOURCE_WORDS, "target": [""] * TARGET_WORDS}
    for method, variant in (
        ("transformer", "default"),
        ("sq-transformer", "sal"),
        ("sq-transformer", "srl"),
    ):
        spec = resolve_training(
            catalogue, Run.parse(f"scan-jump-x2/{method}/{variant}/seed-1"), "full"
        )
        model = build_model(spec.model, vocabulary).train()
        objective = objective_of(spec, model)
        ours[f"{method} {variant}"] = step(model, lambda m=model, o=objective: o(m, batch)[0])
    seconds = take_turns(ours, args.rounds)
    show("The paper's models", seconds, "transformer default")
    for name, call in ours.items():
        pair = {name: call, f"{name}, bf16": under_autocast(call)}
        show("bf16 autocast", take_turns(pair, args.rounds), name)
    peak = gemm_peak()
    for name, call in ours.items():
        count = flops(call)
        share = count / statistics.median(seconds[name]) / peak
        Console().print(
            f"{name}: {count / 1e9:.1f} GFLOP a step, {100 * share:.0f}% of the GEMM peak of {peak / 1e9:.0f} GFLOP/s"
        )


if __name__ == "__main__":
    main()
