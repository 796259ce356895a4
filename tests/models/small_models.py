"""Small models and batches for the tests of models and objectives."""

import torch
from torch import Tensor, nn

from workflow_scripts.models.lrf import model as fused_transformer
from workflow_scripts.models.sq_transformer import model as sq_transformer
from workflow_scripts.models.transformer import model as seq2seq

SMALL = {"layers": 2, "heads": 2, "width": 16, "feed_forward": 24}
SRL = {"attention": "srl", "next_code_stream": "code", "straight_through": False, "ema_decay": 1.0}

# Every way a model attends; each with its settings.
PLAIN = {"relative": {}, "sinusoidal": {"positions": "sinusoidal"}, "ungated": {"gated": False}}
STRUCTURED = {
    "sal-code": {"cross_query": "code"},
    "sal-code-stream": {"cross_query": "code", "next_code_stream": "code"},
    "sal-word": {"cross_query": "word", "next_code_stream": "code"},
    "sal-systematic": {"cross_query": "systematic"},
    "sal-cosine": {"similarity": "cosine"},
    "sal-average": {"codebook_gradient": False, "cross_query": "word", "next_code_stream": "code"},
    "srl": SRL,
    "srl-causal": SRL | {"source_predictor": "causal", "target_predictor": "causal"},
    "none": {"attention": "none"},
    "mmi": {"clustering": "mmi"},
    "mmi-causal": {"clustering": "mmi", "source_predictor": "causal"},
    "vq": {"clustering": "none"},
}
FUSED = {
    "fused": {},
    "fused-relative": {"positions": "relative"},
    "fused-gated": {"positions": "relative", "gated": True, "max_relative_position": 20},
    "fused-encoder": {"fuse_in": "encoder"},
    "fused-decoder": {"fuse_in": "decoder"},
    "fused-current": {"fuse_over": "earlier_and_current"},
    "fused-previous": {"fuse_over": "previous"},
    "fused-uniform": {"fuse_weights": "uniform"},
    "fused-bare": {"fuse_residual": False},
    "fused-shared": {"fuse_shared": True, "fuse_heads": 4},
}
ALL = list(PLAIN) + list(STRUCTURED) + list(FUSED)


def make(name: str, seed: int = 0, vocabulary: int = 12, **changes: object) -> nn.Module:
    """A small model with random weights, larger than at the start of training so that differences
    show.
    """
    torch.manual_seed(seed)
    if name in PLAIN:
        model = seq2seq.build(
            seq2seq.Settings(**(SMALL | PLAIN[name] | changes)), vocabulary, vocabulary
        )
    elif name in FUSED:
        model = fused_transformer.build(
            fused_transformer.Settings(**(SMALL | FUSED[name] | changes)), vocabulary, vocabulary
        )
    else:
        model = sq_transformer.build(
            sq_transformer.Settings(**(SMALL | STRUCTURED[name] | changes)), vocabulary, vocabulary
        )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)
    return model


def count_parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def sentences(lengths: list[int], vocabulary: int = 12, seed: int = 0) -> Tensor:
    """Random ids [B, S], the end symbol as the last of each sentence's `lengths`, then padding."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(4, vocabulary, (len(lengths), max(lengths)), generator=generator)
    position = torch.arange(max(lengths))
    end = torch.tensor(lengths)[:, None] - 1
    return ids.masked_fill(position == end, 2).masked_fill(position > end, 0)


def decoder_input(target: Tensor) -> Tensor:
    """target_in for target_out [B, T]: the end symbol first, then all but the last token, then
    padding.
    """
    moved = torch.cat([torch.full_like(target[:, :1], 2), target[:, :-1]], dim=1)
    return moved.masked_fill(target.eq(0), 0)
