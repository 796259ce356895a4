"""What an estimate of a GPU's memory is made of. Nothing heavy is imported."""

import math
from dataclasses import dataclass

FLOAT = 4  # bytes of a float32


@dataclass(frozen=True)
class Batch:
    """The largest batch: sentences, their padded length, and the positions that get scores of the vocabulary."""

    sentences: int
    length: int
    scored: int

    @property
    def tokens(self) -> int:
        return self.sentences * self.length


@dataclass(frozen=True)
class Memory:
    """Bytes on the GPU. The gradients come as the activations go, so `peak` is less than the sum of the parts."""

    weights: int
    gradients: int
    moments: int
    activations: int
    logits: int
    peak: int
    checkpointed: bool

    def __str__(self) -> str:
        parts = {
            "weights": self.weights,
            "gradients": self.gradients,
            "Adam's moments": self.moments,
            "checkpointed activations" if self.checkpointed else "activations": self.activations,
            "logits": self.logits,
        }
        return f"{self.peak / 1e9:.1f} GB: " + ", ".join(f"{what} {size / 1e9:.1f}" for what, size in parts.items())


def largest_batch(spec: dict, longest: int) -> Batch:
    """The batch of the longest sentences that the settings, or a search before them, allow, or the larger share of it
    of a process."""
    tokens = spec["training"]["batch_tokens"]
    length = min(longest, tokens)
    searched = spec.get("search", {}).get("batch_sentences")
    most = max(searched) if searched else spec["training"].get("batch_sentences") or tokens
    sentences = min(tokens // length, most)
    sentences = math.ceil(sentences / spec["training"].get("gpus", 1))
    return Batch(sentences, length, sentences if spec["kind"] == "prompt" else sentences * length)
