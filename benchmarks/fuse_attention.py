"""Fuse-attention against what it is added to: a layer with it against a plain one, in time and
memory, and a training step of LRF against one of the Transformer with as many parameters.
"""

import argparse
import statistics
from collections.abc import Callable

import torch
from rich.console import Console
from torch import Tensor, nn

from benchmarks.training_step import SOURCE_WORDS, TARGET_WORDS, random_batch, step
from benchmarks.turns import ratio, show, take_turns
from workflow_scripts.models.lrf import model as fused_transformer
from workflow_scripts.models.lrf.model import FusedLayer
from workflow_scripts.tasks.seq2seq.word_loss import WordLoss

# Width, feed-forward width, heads, layers: those of CoGnition, of SCAN and COGS, and of the small
# scale.
SIZES = {"CoGnition": (512, 1024, 4, 6), "SCAN": (256, 512, 4, 3), "small": (128, 256, 4, 2)}
TARGET = 1.5


def settings(name: str, **more: object) -> dict:
    width, feed_forward, heads, layers = SIZES[name]
    return {
        "width": width,
        "feed_forward": feed_forward,
        "heads": heads,
        "layers": layers,
        "dropout": 0.3,
        **more,
    }


def both_ways(layer: nn.Module, forward: Callable[[], Tensor]) -> Callable[[], None]:
    """Forward and backward of a layer."""

    def call() -> None:
        forward().sum().backward()
        layer.zero_grad()

    return call


def saved_bytes(forward: Callable[[], Tensor]) -> int:
    """Bytes that autograd keeps of one forward pass, weights aside; memory that several hold counts
    once.
    """
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        if not isinstance(tensor, nn.Parameter) and not isinstance(tensor._base, nn.Parameter):
            storage = tensor.untyped_storage()
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output = forward()
    del output
    return sum(kept.values())


def layers(
    name: str, sentences: int, length: int
) -> dict[str, tuple[nn.Module, Callable[[], Tensor]]]:
    """A plain encoder layer, one as many parameters wide, and LRF's layers 1, 2 and last, on the
    same states.
    """
    width, _, _, count = SIZES[name]
    plain, wider, fused = (
        fused_transformer.build(
            fused_transformer.Settings(**settings(name, **more)), SOURCE_WORDS, TARGET_WORDS
        )
        for more in ({"fuse_in": "decoder"}, {"fuse_in": "wider"}, {})
    )
    states = [torch.randn(length, sentences, width, requires_grad=True) for _ in range(count)]
    found: dict[str, tuple[nn.Module, Callable[[], Tensor]]] = {}
    for title, layer in (("plain", plain.encoder[0]), ("wider", wider.encoder[0])):
        given = states[-1:] if isinstance(layer, FusedLayer) else states[-1]
        found[title] = layer, lambda layer=layer, given=given: layer(given, None)
    for number in sorted({1, 2, count}):
        layer = fused.encoder[number - 1]
        found[f"LRF, layer {number}"] = (
            layer,
            lambda layer=layer, given=states[:number]: layer(given, None),
        )
    return found


def steps(
    name: str, sentences: int, source_length: int, target_length: int
) -> dict[str, Callable[[], None]]:
    """One training step of the Transformer with as many parameters, and of LRF: default, one key,
    shared modules.
    """
    batch = random_batch(sentences, source_length, target_length)
    kinds = {"as many parameters": {"fuse_in": "wider"}, "LRF": {}}
    kinds |= {"one key": {"fuse_over": "previous"}, "shared": {"fuse_shared": True}}
    loss, calls = WordLoss(), {}
    for title, more in kinds.items():
        model = fused_transformer.build(
            fused_transformer.Settings(**settings(name, **more)), SOURCE_WORDS, TARGET_WORDS
        ).train()
        calls[title] = step(model, lambda m=model: loss(m, batch)[0])
    return calls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--warm-up", type=int, default=2)
    parser.add_argument("--sizes", nargs="*", default=list(SIZES), choices=list(SIZES))
    parser.add_argument("--sentences", type=int, default=128)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    for name in args.sizes:
        size = f"{name}, {args.sentences} sentences, {args.threads} threads"
        contenders = layers(name, args.sentences, length=12)
        calls = {title: both_ways(*pair) for title, pair in contenders.items()}
        show(
            f"One encoder layer, both ways: {size}",
            take_turns(calls, args.rounds, args.warm_up),
            "plain",
        )
        memory = {title: saved_bytes(forward) for title, (_, forward) in contenders.items()}
        for title, kept in memory.items():
            Console().print(
                f"{title}: {kept / 1e6:.1f} MB kept for the backward pass, {kept / memory['plain']:.2f}"
            )
        seconds = take_turns(steps(name, args.sentences, 11, 12), args.rounds, args.warm_up)
        show(f"One training step: {size}", seconds, "as many parameters")
        found = ratio(seconds, "LRF", "as many parameters")
        words = args.sentences * 13 / statistics.median(seconds["LRF"])
        Console().print(
            f"LRF: {found:.2f} times the step (target: at most {TARGET}), {words:.0f} target words/s"
        )


if __name__ == "__main__":
    main()
