"""The logits under CAP, of which the package itself reads only the largest."""

from collections.abc import Sequence

from torch import Tensor, nn

from workflow_scripts.interventions.cap import _Run


def compute_cap_logits(
    model: nn.Module, ids: Tensor, words: Tensor, layers: Sequence[int], pooling: str
) -> Tensor:
    """Compute the logits at the last word under CAP(s) for each s of `layers`: ids, words [B, S] ->
    [layers, B, V].
    """
    run = _Run(model, ids, words, layers, [pooling])
    logits = run.logits.repeat(len(run.layers), 1, 1)
    for items, found in run.run_suffixes():
        logits[:, items] = found[:, 0]
    return logits[[run.layers.index(layer) for layer in layers]]
